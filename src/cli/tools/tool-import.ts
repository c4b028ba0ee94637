import { resolve } from 'node:path';
import { createForge } from '../../forge/forge.ts';
import { standaloneContext } from '../../forge/standalone-context.ts';
import type { ToolCandidate, RefusedTool } from '../../forge/types.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { printable } from '../../lib/printable.ts';
import { createSupervisor } from '../../sandbox/supervisor.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { prepareStateFolder } from '../../standalone/trust/trust.ts';
import { storePendingImport } from '../../tempering/packages/pending-imports.ts';
import { assertPackageDigest, type PackagedTool, parsePackage } from '../../tempering/packages/packages.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { readInputFile } from '../input/input-files.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { configFolder } from '../state/config-folder.ts';
import { verifyAttestation } from './attestation.ts';

export interface ToolImportOptions {
  /** Path of the package; `-` reads standard input. */
  file: string;
  agent: string;
  namespace: string;
  /** A signed attestation of the package, and the public key that must have signed it. */
  attestation?: string;
  trustedKey?: string;
  state: string;
  output: 'text' | 'json';
}

/** Time limit for checking a package. */
const CHECK_TIMEOUT_MS = 120_000;

/**
 * Runs a package through every gate that needs no judge, and stores it for the next session of the agent, where the judge and the
 * agent's policy decide. The tool does not become active here.
 */
export async function toolImport(options: ToolImportOptions, io: CliIo): Promise<number> {
  const packaged = parsePackage(await readInputFile(options.file, 'the package', io));
  const checked = await check(packaged, io);
  if ('accepted' in checked) {
    if (options.output === 'json')
      writeJsonLine(io, {
        name: checked.name,
        imported: false,
        stage: checked.gate,
        code: checked.code,
        message: checked.message,
      });
    else io.error(`${checked.name} refused at ${checked.gate}: ${checked.code} ${checked.message}\n`);
    return EXIT.refused;
  }
  assertPackageDigest(packaged, checked.digest);
  await verifyAttestation(options, checked.digest, io);
  const { name } = checked.artifact;
  const { agent, namespace } = options;
  const state = resolve(io.cwd, options.state);
  await prepareStateFolder(state, stateKeys(configFolder(io)));
  const importedAt = systemClock.now().toISOString();
  await storePendingImport(fileRecordStore(state), {
    name,
    digest: checked.digest,
    request: packaged.request,
    agent,
    namespace,
    importedAt,
  });
  if (options.output === 'json') {
    writeJsonLine(io, { name, imported: true, digest: checked.digest, agent, namespace, warnings: packaged.warnings });
    return EXIT.ok;
  }
  for (const warning of packaged.warnings) io.error(`${name}: ${warning}\n`);
  await warnUnknownAgent(options, io);
  io.out(
    `${name} (${checked.digest}) passed every gate except the judge\nthe next session of agent ${namespace}/${agent} in ${options.state} imports it: temper run\n`,
  );
  return EXIT.ok;
}

/** A tool may be imported before the first run of its agent, so an unknown name is only a warning. */
async function warnUnknownAgent({ agent, state }: ToolImportOptions, io: CliIo): Promise<void> {
  const agents = await fileRecordStore(resolve(io.cwd, state)).list('agents');
  if (agents.some(({ name }) => name === agent)) return;
  const known = agents.map(({ name }) => name).join(', ');
  const hint = known === '' ? 'no agent has run there' : `agents there: ${known}`;
  io.error(`no agent "${printable(agent, 63)}" has run in ${printable(state, 200)} yet; ${hint}\n`);
}

async function check(packaged: PackagedTool, io: CliIo): Promise<ToolCandidate | RefusedTool> {
  await using sandbox = await createSupervisor({ clock: systemClock, warm: 1 });
  const forge = createForge({ sandbox, clock: systemClock, schemas: createSchemaCompiler() });
  const op = {
    signal: io.signal,
    deadline: systemClock.monotonic() + CHECK_TIMEOUT_MS,
    key: `import-${packaged.name}`,
  };
  const source = { request: packaged.request };
  // `await` is required: the sandbox is disposed when this function returns.
  return await forge.check(
    source,
    standaloneContext(source, () => undefined, op),
  );
}
