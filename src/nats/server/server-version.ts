import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** First safe patch of each release line. Older patches have known vulnerabilities: stream restore past permissions, unauthenticated routes. */
const MIN_VERSIONS: readonly (readonly [major: number, minor: number, patch: number])[] = [
  [2, 11, 16],
  [2, 12, 7],
  [2, 14, 5],
];

/** Throws TEMPER_BUS_UNSUPPORTED for a server below the minimum version of its release line, or of a line without a fixed patch. */
export function assertServerVersion(version: string): void {
  if (isSupported(version)) return;
  throw new TemperError(
    'TEMPER_BUS_UNSUPPORTED',
    `NATS is nats-server ${printable(version, 40) || 'of unknown version'}; use 2.14.5 or newer (2.12.7 and 2.11.16 are the oldest of their lines)`,
  );
}

function isSupported(version: string): boolean {
  const parts = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.-]{1,64})?$/.exec(version);
  if (parts === null) return false;
  const [major = 0, minor = 0, patch = 0] = parts.slice(1, 4).map(Number);
  const newest = MIN_VERSIONS.at(-1);
  if (newest === undefined) return false;
  if (major > newest[0] || (major === newest[0] && minor > newest[1])) return true;
  const minimum = MIN_VERSIONS.find(([lineMajor, lineMinor]) => lineMajor === major && lineMinor === minor);
  if (minimum === undefined) return false;
  // A pre-release of the minimum version is older than it.
  return patch > minimum[2] || (patch === minimum[2] && parts[4] === undefined);
}
