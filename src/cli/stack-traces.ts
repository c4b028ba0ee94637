import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { originalPositions, type Position } from './source-map.ts';

/** Positions of a bundle that are remembered: a program has few places that throw. */
const CACHE_SIZE = 2_000;

/**
 * Makes stack traces of a bundle name the source file, line and column, by the source map beside each of its files. Node's own
 * `--enable-source-maps` keeps the decoded maps in memory from the start (56 MB for an agent). This function reads a map when a stack is
 * first formatted, keeps the positions that occurred and nothing else. Without a readable map traces stay as they are.
 *
 * @param entry URL of the file that starts the bundle, as `import.meta.url` states it; its other files are below the same folder
 */
export function installSourceMap(entry: string): void {
  const folder = new URL('.', entry).href;
  const known = new Map<string, string>();
  const locate = (sites: readonly NodeJS.CallSite[]): void => {
    const missing = sites.filter((site) => isBundled(site, folder) && !known.has(locationOf(site)));
    if (known.size + missing.length > CACHE_SIZE) known.clear();
    for (const [file, places] of Map.groupBy(missing, (site) => site.getFileName() ?? '')) {
      const found = readPositions(`${fileURLToPath(file)}.map`, places.map(positionOf));
      for (const [index, site] of places.entries()) known.set(locationOf(site), found[index] ?? locationOf(site));
    }
  };
  Error.prepareStackTrace = (error, sites) => {
    locate(sites);
    const lines = sites.map((site) => {
      const at = locationOf(site);
      // oxlint-disable-next-line typescript/no-base-to-string -- V8 formats a call site as the line of a trace
      return `\n    at ${String(site).replace(at, known.get(at) ?? at)}`;
    });
    return `${Error.prototype.toString.call(error)}${lines.join('')}`;
  };
}

function isBundled(site: NodeJS.CallSite, folder: string): boolean {
  const file = site.getFileName() ?? '';
  return file.startsWith(folder) && file.endsWith('.mjs');
}

function positionOf(site: NodeJS.CallSite): Position {
  return { line: site.getLineNumber() ?? 0, column: site.getColumnNumber() ?? 0 };
}

function locationOf(site: NodeJS.CallSite): string {
  return `${site.getFileName()}:${site.getLineNumber()}:${site.getColumnNumber()}`;
}

function readPositions(path: string, positions: readonly Position[]): (string | undefined)[] {
  try {
    return originalPositions(readFileSync(path, 'utf8'), positions);
  } catch {
    // An image without its map still runs; its traces name the bundle.
    return [];
  }
}
