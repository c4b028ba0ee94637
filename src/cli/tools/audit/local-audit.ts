import { resolve } from 'node:path';
import { openAudit } from '../../../audit/recorded-trail.ts';
import { builtInNames } from '../../../engine/built-in.ts';
import { systemClock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { fileRecordStore } from '../../../lib/file-record-store.ts';
import { printable } from '../../../lib/printable.ts';
import type { RecordStore } from '../../../lib/record-store.ts';
import { openModels } from '../../../models/named-models.ts';
import { createSupervisor } from '../../../sandbox/supervisor.ts';
import { evaluateLocalTrust } from '../../../standalone/levels/local-trust.ts';
import { auditTool } from '../../../standalone/tool-audit/local-audit.ts';
import { storeAudit } from '../../../standalone/tool-audit/stored-audit.ts';
import { auditBoundProblem, toAuditReport, tokensPerRun } from '../../../tool-audit/report.ts';
import { privateFiles } from '../../../standalone/trust/private-folder.ts';
import { stateKeys } from '../../../standalone/trust/state-key.ts';
import { openRegistry, type Registry } from '../../../tempering/registry/registry.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { openModelSource } from '../../run/model-source.ts';
import { existingFolder, governingFiles, readManifests } from '../../run/run.ts';
import { selectAgent } from '../../run/select-agent.ts';
import { configFolder } from '../../state/config-folder.ts';
import { stateFolder } from '../../state/state-folder.ts';
import { auditText } from './audit-text.ts';

export interface ToolAuditOptions {
  /** Object name, digest, or the name that models use. */
  tool: string;
  filename: string[];
  message: string[];
  agent?: string;
  namespace?: string;
  workspace: string;
  maxTokens: number;
  providers?: string;
  modelScript?: string;
  state: string;
  output: 'text' | 'json';
}

const DEFAULT_NAMESPACE = 'default';

/** Gives each task to a fresh agent with the tool and to one without it, prints and stores the comparison. */
export async function toolAudit(options: ToolAuditOptions, io: CliIo): Promise<number> {
  const tasks = options.message;
  const problem = auditBoundProblem(tasks.length, options.maxTokens);
  if (problem !== undefined) throw new TemperError('TEMPER_USAGE', `--message, --max-tokens: ${problem}`);
  const folder = await stateFolder(io, options.state);
  privateFiles(folder);
  const records = fileRecordStore(folder);
  const manifests = await readManifests(options, io);
  if (manifests === undefined) return EXIT.refused;
  const { agent, policy } = selectAgent(manifests, options);
  const { name, namespace = DEFAULT_NAMESPACE } = agent.metadata;
  const registry = await readRegistry(records);
  const tool = findTool(registry, options.tool, { agent: name, namespace });
  const trust = await evaluateLocalTrust({ records, agent, policy, namespace, now: systemClock.now() });
  await using source = await openModelSource(options, io);
  const models = openModels(source.config, { clock: systemClock, environment: io.environment, random: Math.random });
  const model = models.resolve(agent.spec.model.primary);
  const modelName = `${model.provider}/${model.model}`;
  io.error(
    `note: ${tasks.length} tasks, each with ${tool.artifact.name} and without it, use at most about ${options.maxTokens} tokens of ${printable(modelName, 120)}\n`,
  );
  await using sandbox = await createSupervisor({ clock: systemClock, maxRunners: 1 });
  const policyOf = { name: policy.metadata.name, spec: policy.spec };
  const { level, categories } = trust.levels;
  const audited = await auditTool(
    {
      agent: { name, namespace, spec: agent.spec, policy: policyOf, level, categoryLevels: categories },
      models,
      sandbox,
      digest: tool.digest,
      tools: registry.resolve(name, namespace, tool.tier === 'Session' ? tool.owner.session : ''),
      workspace: await existingFolder(resolve(io.cwd, options.workspace)),
      protectedPaths: [folder, stateKeys(configFolder(io)).folder, ...governingFiles(options, manifests, io.cwd)],
      maxTokensPerRun: tokensPerRun(options.maxTokens, tasks.length),
    },
    tasks,
    io.signal,
  );
  const report = toAuditReport({ time: systemClock.now().toISOString(), agent: name, model: modelName }, audited);
  await storeAudit(records, namespace, tool.digest, report);
  if (options.output === 'json') writeJsonLine(io, { tool: tool.artifact.name, digest: tool.digest, ...report });
  else io.out(auditText(tool.artifact.name, report, `temper describe tool ${tool.artifact.name}`));
  return EXIT.ok;
}

/** Only read: another process may have locked the folder. */
async function readRegistry(records: RecordStore): Promise<Registry> {
  const audit = await openAudit({ records, clock: systemClock });
  return openRegistry({ records, audit, clock: systemClock, builtIn: builtInNames() });
}

function findTool(
  registry: Registry,
  target: string,
  { agent, namespace }: { agent: string; namespace: string },
): RegisteredTool {
  const own = registry
    .all()
    .filter(({ active, owner, tier, digest }) => {
      const isInUse = active && registry.deactivation(digest, { agent, namespace }) === undefined;
      return isInUse && owner.namespace === namespace && (tier === 'Shared' || owner.agent === agent);
    })
    .filter(({ object, digest, artifact }) =>
      [object.split('/').at(-1), digest, artifact.name].some((name) => name === target),
    );
  const [found] = own;
  if (found !== undefined) return found;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `agent "${agent}" has no active tool "${printable(target, 253)}"; temper get tools lists the tools`,
  );
}
