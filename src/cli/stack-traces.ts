import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { originalPositionFor, TraceMap } from '@jridgewell/trace-mapping';

/** Positions of a bundle that are remembered: a program has few places that throw. */
const CACHE_SIZE = 2_000;

/**
 * Makes stack traces of a bundle name the source file, line and column, by the source map beside it. Node's own `--enable-source-maps`
 * keeps the decoded map in memory from the start (56 MB for an agent); this reads it when a stack is first formatted, keeps the
 * positions that occurred and drops the rest. Without a readable map traces stay as they are.
 *
 * @param bundle URL of the bundle, as `import.meta.url` states it
 */
export function installSourceMap(bundle: string): void {
  const map = `${fileURLToPath(bundle)}.map`;
  const known = new Map<string, string>();
  const locate = (sites: readonly NodeJS.CallSite[]): void => {
    const missing = sites.filter((site) => isOf(bundle, site) && !known.has(positionOf(site)));
    if (missing.length === 0) return;
    if (known.size + missing.length > CACHE_SIZE) known.clear();
    const trace = readMap(map);
    for (const site of missing) known.set(positionOf(site), sourceOf(trace, site) ?? positionOf(site));
  };
  Error.prepareStackTrace = (error, sites) => {
    locate(sites);
    const lines = sites.map((site) => {
      const at = positionOf(site);
      // oxlint-disable-next-line typescript/no-base-to-string -- V8 formats a call site as the line of a trace
      return `\n    at ${String(site).replace(at, known.get(at) ?? at)}`;
    });
    return `${Error.prototype.toString.call(error)}${lines.join('')}`;
  };
}

function isOf(bundle: string, site: NodeJS.CallSite): boolean {
  return site.getFileName() === bundle;
}

function positionOf(site: NodeJS.CallSite): string {
  return `${site.getFileName()}:${site.getLineNumber()}:${site.getColumnNumber()}`;
}

function readMap(path: string): TraceMap | undefined {
  try {
    return new TraceMap(readFileSync(path, 'utf8'));
  } catch {
    // An image without its map still runs; its traces name the bundle.
    return undefined;
  }
}

function sourceOf(map: TraceMap | undefined, site: NodeJS.CallSite): string | undefined {
  const [line, column] = [site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0];
  if (map === undefined || line < 1 || column < 1) return undefined;
  const { source, line: original, column: offset } = originalPositionFor(map, { line, column: column - 1 });
  return source === null ? undefined : `${source}:${original}:${offset + 1}`;
}
