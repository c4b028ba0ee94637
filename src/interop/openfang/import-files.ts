import { API_VERSION } from '../../api/names.ts';
import type { Agent, AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { importAgent } from './import-agent.ts';
import type { ImportContext } from './import-context.ts';
import type { ImportedKey } from './keys/import-log.ts';
import { type ManifestFormat, parseOpenFangManifest } from './source/manifest-text.ts';
import { objectName } from './values/object-names.ts';

const MAX_HOSTS = 100;

export interface SourceFile {
  /** The path as the user knows it. */
  readonly source: string;
  /** Names an agent whose file has no name. */
  readonly name: string;
  readonly format: ManifestFormat;
  /** Undefined when the file is too large or not UTF-8; `problem` has the reason. */
  readonly text?: string;
  readonly problem?: string;
}

export interface ImportedFile {
  readonly source: string;
  readonly name: string;
  /** Absent when the file is refused. */
  readonly agent?: Agent;
  readonly keys: readonly ImportedKey[];
  readonly problems: readonly string[];
}

export interface Import {
  readonly files: readonly ImportedFile[];
  /** Absent when no file is imported. */
  readonly policy?: TrustPolicy;
}

export interface ImportRules extends ImportContext {
  /** The problems of an object as `temper validate` finds them. */
  problemsOf(object: Json): readonly string[];
}

/**
 * Imports files to agents of one TrustPolicy. Pure: the same files in the same order give the same objects. A file that cannot be an
 * agent, or whose agent would not be valid, is refused with its reason and does not stop the others.
 */
export function importFiles(sources: readonly SourceFile[], rules: ImportRules): Import {
  const names = new Map<string, string>();
  const hosts = new Set<string>();
  const specs: AgentSpec[] = [];
  const files = sources.map((source): ImportedFile => {
    const file = importFile(source, rules);
    const problems = file.agent === undefined ? [] : sharedProblems(file.agent, source.source, names, hosts);
    if (file.agent === undefined || file.problems.length + problems.length > 0) return refused(file, problems);
    names.set(file.agent.metadata.name, source.source);
    for (const host of file.agent.spec.grants?.network ?? []) hosts.add(host);
    specs.push(file.agent.spec);
    return file;
  });
  if (specs.length === 0) return { files };
  return { files, policy: policyOf(rules.policy, [...hosts].toSorted(), neededLevel(specs, hosts, rules)) };
}

function importFile({ source, name, format, text, problem }: SourceFile, rules: ImportRules): ImportedFile {
  const none = { source, name: objectName(name), keys: [] };
  if (text === undefined) return { ...none, problems: [problem ?? 'the file cannot be read'] };
  const parsed = parseOpenFangManifest(text, format);
  if ('problem' in parsed) return { ...none, problems: [parsed.problem] };
  const { agent, keys, problems } = importAgent(parsed.manifest, name, rules);
  const found = problems.length > 0 ? problems : rules.problemsOf(agent as unknown as Json);
  return { source, name: agent.metadata.name, agent, keys, problems: found };
}

function refused({ source, name, keys, problems }: ImportedFile, more: readonly string[]): ImportedFile {
  return { source, name, keys, problems: [...problems, ...more] };
}

function sharedProblems(
  { metadata, spec }: Agent,
  source: string,
  names: ReadonlyMap<string, string>,
  hosts: ReadonlySet<string>,
): string[] {
  const earlier = names.get(metadata.name);
  const all = new Set([...hosts, ...(spec.grants?.network ?? [])]);
  return [
    ...(earlier === undefined || earlier === source
      ? []
      : [`${printable(earlier, 200)} has an agent of the name ${metadata.name} too; rename one`]),
    ...(all.size > MAX_HOSTS
      ? [`all files together name more than ${MAX_HOSTS} hosts; import this one with another --policy`]
      : []),
  ];
}

type ImportedLevel = 'sandboxed' | 'restricted' | 'standard';

/** The lowest level that opens the tools of the agents: restricted those for the web, standard programs. */
function neededLevel(
  specs: readonly AgentSpec[],
  hosts: ReadonlySet<string>,
  { patterns }: ImportContext,
): ImportedLevel {
  const has = ({ grants }: AgentSpec, tool: string): boolean => patterns.covers(grants?.tools ?? [], tool, 'tool');
  if (specs.some((spec) => has(spec, 'shell_exec') && (spec.grants?.shell ?? []).length > 0)) return 'standard';
  const isWeb = hosts.size > 0 || specs.some((spec) => has(spec, 'web_fetch') || has(spec, 'web_search'));
  return isWeb ? 'restricted' : 'sandboxed';
}

/** What level standard opens besides programs stays as it is at level restricted. */
const ONLY_PROGRAMS = { network: 'Allowlist', git: 'ReadAndBranch' } as const;

/** The least that the imported agents need. Level restricted allows the hosts that policy and agent name. */
function policyOf(name: string, hosts: readonly string[], level: ImportedLevel): TrustPolicy {
  return {
    apiVersion: API_VERSION,
    kind: 'TrustPolicy',
    metadata: { name },
    spec: {
      description: 'The limits of agents that were imported from OpenFang.',
      level: { initial: level, ceiling: level },
      ...(level === 'standard' ? { constraints: ONLY_PROGRAMS } : {}),
      ...(hosts.length === 0 ? {} : { egress: { allow: [...hosts] } }),
    },
  };
}
