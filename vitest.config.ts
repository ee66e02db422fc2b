import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    // Whole-command tests start Node processes; on a busy two-core machine those take their time.
    testTimeout: 60_000,
    reporters: ['default'],
  },
});
