import { systemClock } from '../../lib/clock.ts';
import { printable } from '../../lib/printable.ts';
import { type Adopted, adoptState } from '../../standalone/trust/adopt.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { counted } from '../run/model-usage.ts';
import { configFolder } from '../state/config-folder.ts';

export interface AdoptVerbOptions {
  /** Absolute path of the state folder. */
  folder: string;
  state: string;
  withTools?: boolean;
  output: 'text' | 'json';
}

const MAX_SHOWN_NAMES = 20;

/** Takes a state folder over, and prints what it has and what stays inactive. */
export async function adopt(options: AdoptVerbOptions, io: CliIo): Promise<number> {
  const { folder, state, output, withTools = false } = options;
  const adopted = await adoptState({ folder, keys: stateKeys(configFolder(io)), clock: systemClock, withTools });
  if (output === 'json') writeJsonLine(io, { state, ...adopted });
  else io.out(`${adoptionText(state, adopted).join('\n')}\n`);
  return EXIT.ok;
}

function adoptionText(state: string, adopted: Adopted): string[] {
  const { records, sessions, memory, imports, active, inactive, setAside } = adopted;
  const lines = [
    `${printable(state, 200)} is now yours: ${counted(records, 'record')}, ${counted(sessions, 'session')}, ${counted(memory, 'memory value')}, ${counted(imports, 'package')} to import`,
  ];
  if (active.length > 0) lines.push(`active tools: ${names(active)}`);
  if (inactive.length > 0)
    lines.push(`inactive tools: ${names(inactive)}; temper get tools has the reasons, --with-tools trusts them`);
  if (setAside > 0)
    lines.push(
      `${counted(setAside, 'decision, approval or promotion')} moved to unproven/, where nothing applies them`,
    );
  return lines;
}

function names(all: readonly string[]): string {
  const shown = all.slice(0, MAX_SHOWN_NAMES).map((name) => printable(name, 63));
  return all.length > shown.length ? `${shown.join(', ')} and ${all.length - shown.length} more` : shown.join(', ');
}
