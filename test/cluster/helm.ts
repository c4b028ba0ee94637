import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import type { ApiObject } from './api-client.ts';

const CHART = fileURLToPath(new URL('../../charts/temper', import.meta.url));
/** A helm built from its module does not know which Kubernetes it belongs to. */
const KUBERNETES = '1.36.3';

export interface ChartObject extends ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

/** Runs helm. Its standard error is in the error's message when it fails. */
export async function helm(...args: string[]): Promise<string> {
  const run = promisify(execFile);
  const { stdout } = await run(await helmProgram(), args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** The objects of a release called `temper` in `temper-system`, tests left out; `args` as for `helm template`. */
export async function renderChart(...args: string[]): Promise<ChartObject[]> {
  const release = ['template', 'temper', CHART, '--namespace', 'temper-system', '--skip-tests'];
  const text = await helm(...release, '--kube-version', KUBERNETES, ...args);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as ChartObject | null)
    .filter((object) => object !== null);
}

/** `HELM`, else the newest of the tools built for tests, else the one of the PATH. */
async function helmProgram(): Promise<string> {
  const { HELM, TEMPER_TOOLS, XDG_CACHE_HOME, PATH = '' } = process.env;
  if (HELM !== undefined) return HELM;
  const cache = TEMPER_TOOLS ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'temper/tools');
  const built = await readdir(cache, { recursive: true }).catch(() => []);
  const found = built
    .filter((file) => file === 'helm' || file.endsWith('/helm'))
    .sort()
    .at(-1);
  if (found !== undefined) return join(cache, found);
  for (const folder of PATH.split(delimiter)) {
    const names: string[] = await readdir(folder).catch(() => []);
    if (names.includes('helm')) return join(folder, 'helm');
  }
  throw new Error('these tests need helm: set HELM to it, or run test/cluster/build-tools.sh');
}
