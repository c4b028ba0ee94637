import { resolve } from 'node:path';
import { findLauncher } from '../../../sandbox/terminal/program-runner.ts';

/** Where `make launcher` puts the launcher in a checkout: from this source file, and from the files of the bundle in `dist/cli`. */
const BUILT_LAUNCHERS = ['../../../../dist', '../..', '..'].map((folder) =>
  resolve(import.meta.dirname, folder, 'launcher/temper-launcher'),
);

/** The launcher on the machine of a user; undefined where there is none. */
export function userLauncher(): string | undefined {
  return findLauncher(BUILT_LAUNCHERS);
}
