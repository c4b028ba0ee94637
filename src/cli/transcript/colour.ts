import type { CliIo } from '../io.ts';

/** Is the output coloured? An empty variable counts as unset, and NO_COLOR wins over FORCE_COLOR. */
export function usesColour(environment: CliIo['environment'], isTerminal: boolean): boolean {
  if ((environment['NO_COLOR'] ?? '') !== '') return false;
  const force = environment['FORCE_COLOR'] ?? '';
  if (force !== '') return force !== '0' && force !== 'false';
  return isTerminal && !isDumb(environment);
}

/** A terminal without control sequences, such as a shell inside an editor. */
export function isDumb(environment: CliIo['environment']): boolean {
  return environment['TERM'] === 'dumb';
}
