/** Runs before each test file. */
import { afterAll, afterEach } from 'vitest';
import { endFile, endTest } from './cleanup.js';

afterEach(endTest);
// Thousands of files take long to remove on a busy machine.
afterAll(endFile, 120_000);
