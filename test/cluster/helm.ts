import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import type { ApiObject } from './api-client.ts';
import { tool } from './tools.ts';

const CHART = fileURLToPath(new URL('../../charts/temper', import.meta.url));
/** A helm built with `go install` has no default Kubernetes version. */
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

/** Runs helm. On failure the error's message contains its stderr. */
export async function helm(...args: string[]): Promise<string> {
  const run = promisify(execFile);
  const { stdout } = await run(await helmProgram(), args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** Renders the release `temper` in `temper-system` without test hooks; `args` are passed to `helm template`. */
export async function renderChart(...args: string[]): Promise<ChartObject[]> {
  const release = ['template', 'temper', CHART, '--namespace', 'temper-system', '--skip-tests'];
  const text = await helm(...release, '--kube-version', KUBERNETES, ...args);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as ChartObject | null)
    .filter((object) => object !== null);
}

/** The path in the environment variable HELM, else the helm built for tests. */
async function helmProgram(): Promise<string> {
  const { HELM } = process.env;
  return HELM ?? tool('helm');
}

/** The configuration in a file of a ConfigMap. */
export function configOf(objects: readonly ChartObject[], name: string, file: string): Record<string, unknown> {
  const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
  if (found === undefined) throw new Error(`the chart has no ConfigMap ${name}`);
  return parse((found['data'] as Record<string, string>)[file] ?? '') as Record<string, unknown>;
}
