/**
 * Keeps zod from compiling code, which the policy of a page forbids. Must be the first import of a program: schemas
 * decide when they are made.
 */
import { config } from 'zod';

config({ jitless: true });
