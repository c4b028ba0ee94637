import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { enterNamespace } from './namespace.ts';
import { type Site, startSite } from './site.ts';

/** A sample as one command, such as `make sample-sql`: its own configuration and state, the servers that its agent asks, and the run. */
export interface Sample {
  /** The folder of the sample below that of all samples. */
  name: string;
  /** Its agent asks hosts, so it runs in a network namespace, beside a server at a public-looking address. */
  needsSite?: true;
  /** Makes what the sample needs besides its manifests. What it returns, the site serves. */
  prepare(folders: SampleFolders): Promise<{ repository?: string } | void>;
  /** The arguments of `temper`, one command after the other. */
  commands(folders: SampleFolders): string[][];
  /** Printed when all commands have succeeded. */
  remark?(folders: SampleFolders): string;
}

/** Absolute paths; all are empty at first. */
export interface SampleFolders {
  /** The folder with the others. */
  own: string;
  /** The configuration folder of Temper, in place of that of the user. */
  config: string;
  /** The workspace of the agent. */
  work: string;
}

const TEMPER = fileURLToPath(new URL('../../../bin/temper', import.meta.url));

/** Runs the sample; its process ends with the exit code of the first command that fails. `--samples` is the folder of all samples. */
export async function runSample(sample: Sample): Promise<void> {
  const options = { samples: { type: 'string', default: '.temper-samples' }, inside: { type: 'boolean' } } as const;
  const { samples, inside = false } = parseArgs({ options }).values;
  const own = resolve(samples, sample.name);
  const folders = { own, config: join(own, 'config/temper'), work: join(own, 'work') };
  if (!inside) await empty(folders);
  if (sample.needsSite === true && !inside) {
    process.exitCode = await enterNamespace(own, [process.argv[1] ?? '', '--samples', samples, '--inside']);
    return;
  }
  const served = (await sample.prepare(folders)) ?? {};
  await using site = sample.needsSite === true ? await startSite(own, served) : undefined;
  process.exitCode = await runCommands(sample, folders, site);
}

async function empty({ own, config, work }: SampleFolders): Promise<void> {
  await rm(own, { recursive: true, force: true });
  for (const folder of [own, config, work]) await mkdir(folder, { recursive: true, mode: 0o700 });
}

async function runCommands(sample: Sample, folders: SampleFolders, site: Site | undefined): Promise<number> {
  const trusted = site === undefined ? {} : { NODE_EXTRA_CA_CERTS: site.certificateFile };
  const env = { ...process.env, ...trusted, XDG_CONFIG_HOME: join(folders.own, 'config') };
  for (const args of sample.commands(folders)) {
    process.stdout.write(`$ temper ${args.map(quoted).join(' ')}\n`);
    const child = spawn(TEMPER, args, { env, stdio: 'inherit' });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) {
      process.stderr.write(`the sample ${sample.name} failed: its last command ended with ${code ?? 'a signal'}\n`);
      return code ?? 1;
    }
  }
  if (sample.remark !== undefined) process.stdout.write(`${sample.remark(folders)}\n`);
  return 0;
}

function quoted(text: string): string {
  return /^[\w./:@#=-]+$/.test(text) ? text : JSON.stringify(text);
}

/** The path as a user in the current folder writes it. */
export function shown(path: string): string {
  return relative(process.cwd(), path);
}

/** The arguments of a run of these files, with one message. */
export function runArguments(
  { own, work }: SampleFolders,
  files: readonly string[],
  script: string,
  message: string,
): string[] {
  const paths = ['--workspace', shown(work), '--state', shown(join(own, 'state'))];
  return ['run', '-f', ...files.map(shown), '--model-script', shown(script), ...paths, '-o', 'text', '-m', message];
}

/** Writes a file of the configuration folder, as only its user may. */
export async function writeConfig({ config }: SampleFolders, name: string, value: object): Promise<void> {
  await writeFile(join(config, name), `${JSON.stringify(value, undefined, 2)}\n`, { mode: 0o600 });
}
