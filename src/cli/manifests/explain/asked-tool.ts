import { DEFAULT_ACTION, TOOL_APIS, TOOL_CATEGORIES } from '../../../api/v1alpha1/actions.ts';
import { builtInDescriptors } from '../../../engine/built-in.ts';
import type { ExternalTool } from '../../../engine/explain/types.ts';
import { forgedPermissions } from '../../../forge/forged-tool.ts';
import { splitReference } from '../../../forge/request.ts';
import { digestOf } from '../../../lib/canonical.ts';
import { isTemperError, type TemperError } from '../../../lib/errors.ts';
import { suggestName } from '../../../lib/suggest.ts';
import { compilePattern } from '../../../policy/patterns/pattern.ts';
import { DEFAULT_STATE } from '../../cluster/options.ts';
import { oneOf, type PolicyQuestion, usageError } from '../policy-question.ts';
import { described, type ForgedTool, named } from './forged-tools.ts';

/** Where the forged tools of the agent are looked up. */
export interface ForgedSource {
  /** Completes "no tool … is forged …". */
  where: string;
  tools(): Promise<readonly ForgedTool[]>;
  /** For a pod: the tools that runs in the state folder of the working directory forged, for the message about an unknown name. */
  ofRuns?(): Promise<readonly ForgedTool[]>;
}

/**
 * The tool of the question, as a call finds it: built in, of a service or a Capability, or forged, then followed by the other forged tools
 * of its session; or else what the options say about it.
 * Throws TEMPER_USAGE for a tool that is not known, and for options that contradict it.
 */
export async function askedTool(
  reference: string,
  options: PolicyQuestion,
  external: readonly ExternalTool[],
  source: ForgedSource,
): Promise<[ExternalTool, ...ExternalTool[]]> {
  const known = [...builtInDescriptors().map((descriptor) => ({ descriptor, requests: [] })), ...external];
  const found = known.find(({ descriptor }) => descriptor.name === reference);
  if (found !== undefined) {
    if (options.forged === true) throw usageError(`--forged: "${reference}" is not a forged tool; leave --forged out`);
    return [found];
  }
  if (options.forged === true) return [forgedByOptions(reference, options)];
  const all = await source.tools();
  const [tool, problem] = selected(named(all, reference));
  if (tool !== undefined) {
    if (options.category !== undefined || options.action !== undefined)
      throw usageError(`"${reference}" is a forged tool, whose category and action are known; leave out the option`);
    return described(tool, all);
  }
  if (problem !== undefined) throw usageError(`"${reference}" ${problem}`);
  if (options.category !== undefined) return [toolByOptions(reference, options.category)];
  const names = [
    ...new Set([...known.map(({ descriptor }) => descriptor.name), ...all.map((one) => one.artifact.name)]),
  ];
  throw await unknownTool(reference, names, source);
}

async function unknownTool(reference: string, names: readonly string[], source: ForgedSource): Promise<TemperError> {
  const problem = `no tool is named "${reference}", and none of this name is forged ${source.where}`;
  const ofRuns = (await source.ofRuns?.()) ?? [];
  if (named(ofRuns, reference).length > 0)
    return usageError(
      `${problem}. A run in this folder has it, in ${DEFAULT_STATE}: add --workspace . to ask what temper run decides`,
    );
  const near = suggestName(reference, [...names, ...ofRuns.map(({ artifact }) => artifact.name)]);
  const hint = near === undefined ? `name one of ${names.join(', ')}` : `did you mean "${near}"?`;
  const ask = source.ofRuns === undefined ? '' : ', ask about the tools of temper run with --workspace FOLDER';
  return usageError(
    `${problem}. Say what it is: with --forged, and --api and --domain for what a forged tool requires, or with its --category${ask}; or ${hint}`,
  );
}

/** The tool of these that a call finds, or why none. */
function selected(found: readonly ForgedTool[]): [ForgedTool | undefined, string?] {
  const active = found.filter(({ inactive }) => inactive === undefined);
  const [first] = active;
  if (first !== undefined && new Set(active.map(({ digest }) => digest)).size > 1) {
    const places = active.map(({ session, tier, digest }) => `${digest} of ${session ?? `tier ${tier}`}`).join(', ');
    return [undefined, `is the name of several forged tools: ${places}; choose one with --session, or as NAME@DIGEST`];
  }
  const [inactive] = found;
  if (first !== undefined || inactive === undefined) return [first];
  return [undefined, `is a forged tool that is not in service: ${inactive.inactive}`];
}

function toolByOptions(name: string, category: string): ExternalTool {
  const known = oneOf('category', category, TOOL_CATEGORIES);
  const descriptor = { name, description: '', inputSchema: {}, sideEffects: true, locality: 'Brokered' as const };
  return { descriptor: { ...descriptor, category: known, action: DEFAULT_ACTION[known] }, requests: [] };
}

/** A forged tool that is nowhere yet. Its schema is not known, so it takes any arguments. */
function forgedByOptions(reference: string, options: PolicyQuestion): ExternalTool {
  if (options.category !== undefined || options.action !== undefined)
    throw usageError('--forged: the category and the action of a forged tool follow from --api; leave out the option');
  const apis = (options.api ?? []).map((api) => oneOf('api', api, TOOL_APIS));
  const { domain: domains = [], path: paths = [] } = options;
  if (domains.length > 0 && !apis.includes('fetch'))
    throw usageError('--domain needs --api fetch, which connects to it');
  if (paths.length > 0 && !apis.includes('fs.readFile'))
    throw usageError('--path needs --api fs.readFile, which reads it');
  for (const domain of domains) assertPattern('domain', domain, 'host');
  for (const path of paths) assertPattern('path', path, 'path');
  const { name } = splitReference(reference);
  const { hosts, ...permissions } = forgedPermissions({ apis, domains });
  const descriptor = {
    name,
    description: '',
    inputSchema: {},
    ...permissions,
    sideEffects: hosts !== undefined,
    locality: hosts === undefined ? ('Local' as const) : ('Brokered' as const),
    forged: { digest: digestOf({ name }), tier: 'Session' as const, ...(hosts === undefined ? {} : { hosts }) },
  };
  return { descriptor, requests: [], requires: { domains, paths } };
}

function assertPattern(option: string, text: string, kind: 'host' | 'path'): void {
  try {
    compilePattern(text, kind);
  } catch (error) {
    if (isTemperError(error, 'TEMPER_PATTERN_INVALID')) throw usageError(`--${option}: ${error.message}`);
    throw error;
  }
}
