import { resolve } from 'node:path';
import { findLauncher } from '../../../sandbox/terminal/program-runner.ts';

/** Where `make launcher` puts the launcher in a source checkout. */
const BUILT_LAUNCHER = resolve(import.meta.dirname, '../../../../dist/launcher/temper-launcher');

/** The launcher on the machine of a user; undefined where there is none. */
export function userLauncher(): string | undefined {
  return findLauncher([BUILT_LAUNCHER]);
}
