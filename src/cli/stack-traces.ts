import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { originalPositions, type Position } from './source-map.ts';

/** Positions of a bundle that are remembered: a program has few places that throw. */
const CACHE_SIZE = 2_000;

/**
 * Makes stack traces of a bundle name the source file, line and column, by the source map beside it. Node's own `--enable-source-maps`
 * keeps the decoded map in memory from the start (56 MB for an agent). This function reads the map when a stack is first formatted, keeps
 * the positions that occurred and nothing else. Without a readable map traces stay as they are.
 *
 * @param bundle URL of the bundle, as `import.meta.url` states it
 */
export function installSourceMap(bundle: string): void {
  const map = `${fileURLToPath(bundle)}.map`;
  const known = new Map<string, string>();
  const locate = (sites: readonly NodeJS.CallSite[]): void => {
    const missing = sites.filter((site) => site.getFileName() === bundle && !known.has(locationOf(site)));
    if (missing.length === 0) return;
    if (known.size + missing.length > CACHE_SIZE) known.clear();
    const found = readPositions(map, missing.map(positionOf));
    for (const [index, site] of missing.entries()) known.set(locationOf(site), found[index] ?? locationOf(site));
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
