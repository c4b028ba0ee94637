import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';

/** Older patches of these lines have known holes: restoring a stream past its permissions, routes without authentication. */
const FLOORS: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [2, 11, 16],
  [2, 12, 7],
  [2, 14, 5],
];

/** Throws TEMPER_BUS_UNSUPPORTED for a server below the floor of its line, or of a line without one. */
export function assertServerVersion(version: string): void {
  if (isSupported(version)) return;
  throw new TemperError(
    'TEMPER_BUS_UNSUPPORTED',
    `the bus is nats-server ${printable(version, 40) || 'of unknown version'}; use 2.14.5 or newer (2.12.7 and 2.11.16 are the oldest of their lines)`,
  );
}

function isSupported(version: string): boolean {
  const parts = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.-]{1,64})?$/.exec(version);
  if (parts === null) return false;
  const [major = 0, minor = 0, patch = 0] = parts.slice(1, 4).map(Number);
  const newest = FLOORS.at(-1);
  if (newest === undefined) return false;
  if (major > newest[0] || (major === newest[0] && minor > newest[1])) return true;
  const floor = FLOORS.find(([floorMajor, floorMinor]) => floorMajor === major && floorMinor === minor);
  if (floor === undefined) return false;
  // A pre-release of the floor itself came before it.
  return patch > floor[2] || (patch === floor[2] && parts[4] === undefined);
}
