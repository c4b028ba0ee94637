import { userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { TemperError } from '../../lib/errors.ts';
import type { CliIo } from '../io.ts';

/**
 * Temper's folder in the configuration folder of the user, by the XDG base directory specification: a relative path counts as unset. Throws
 * TEMPER_STATE_KEY_UNUSABLE for a user without a home.
 */
export function configFolder({ environment }: Pick<CliIo, 'environment'>): string {
  const { XDG_CONFIG_HOME: config = '', HOME: home = '' } = environment;
  if (isAbsolute(config)) return join(config, 'temper');
  return join(isAbsolute(home) ? home : homeOfUser(), '.config', 'temper');
}

function homeOfUser(): string {
  try {
    const { homedir } = userInfo();
    if (isAbsolute(homedir)) return homedir;
  } catch {
    // The system has no entry of this user, as in many containers.
  }
  throw new TemperError(
    'TEMPER_STATE_KEY_UNUSABLE',
    'this user has no home folder for the key of its state folders; set HOME or XDG_CONFIG_HOME to a folder that keeps its files',
  );
}
