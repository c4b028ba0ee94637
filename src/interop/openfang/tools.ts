import type { FieldPath, PatternRules } from '../../api/findings.ts';
import type { JsonObject } from '../../lib/json.ts';
import { matchesStars } from '../../lib/text/star-pattern.ts';
import type { ImportContext } from './import-context.ts';
import type { ImportLog } from './keys/import-log.ts';
import { GrantList } from './values/grant-list.ts';
import { booleanAt, isEmptyList, type TextItem, textAt, textsAt, valueAt } from './source/source-values.ts';
import { absenceOf, OPENFANG_TOOLS, PROFILES, RENAMED_TOOLS, SENDING_TOOLS, TOOL_NOTES } from './tool-names.ts';

const TOOLS: FieldPath = ['capabilities', 'tools'];
const ALLOW_WRITE: FieldPath = ['exec_policy', 'allow_file_write'];

export interface ImportedTools {
  readonly granted: readonly string[];
  readonly denied: readonly string[];
  /** The profile that stands in for the tools; OpenFang derives other capabilities from it. */
  readonly profile?: string;
}

/**
 * The tools of the agent: `capabilities.tools` or the profile, within the allow list, without the block list and what the execution
 * policy forbids. A tool that does not exist here is not granted, so that no later tool of its name is.
 */
export function importTools(source: JsonObject, context: ImportContext, log: ImportLog): ImportedTools {
  const denied = importDenied(source, context, log);
  const profile = importProfile(source, log);
  const requested = [...requestedTools(source, profile, log)];
  const allowList = textsAt(source, ['tool_allowlist'], log);
  const granted = new GrantList('spec.grants.tools', 'tool', context.patterns, log);
  for (const item of requested) grantTool(item, { allowList, denied, granted, context, log });
  logAllowList(source, allowList, log);
  return { granted: granted.patterns, denied, ...(profile === undefined ? {} : { profile }) };
}

/** A profile replaces an empty list of tools only. */
function importProfile(source: JsonObject, log: ImportLog): string | undefined {
  const path = ['profile'];
  const profile = textAt(source, path, log);
  if (profile === undefined) return undefined;
  if (!Object.hasOwn(PROFILES, profile)) {
    log.add(path, 'NotImported', { value: profile, note: `not a profile; use ${Object.keys(PROFILES).join(', ')}` });
    return undefined;
  }
  if (valueAt(source, TOOLS) === undefined || isEmptyList(source, TOOLS)) return profile;
  log.add(path, 'NotImported', {
    value: profile,
    note: 'capabilities.tools names the tools, so the profile is not used',
  });
  return undefined;
}

function requestedTools(source: JsonObject, profile: string | undefined, log: ImportLog): TextItem[] {
  if (profile !== undefined) {
    if (isEmptyList(source, TOOLS))
      log.add(TOOLS, 'Changed', { value: [], note: 'the tools are those of the profile' });
    return (PROFILES[profile] ?? []).map((text) => ({ path: ['profile'], text }));
  }
  const tools = textsAt(source, TOOLS, log);
  if (tools.length === 0 && !log.covers(TOOLS))
    log.add(TOOLS, 'Changed', {
      value: [],
      field: 'spec.grants.tools',
      note: 'no tool is named, which means all tools in OpenFang, and none here; name the tools that the agent needs',
    });
  return tools;
}

interface Selection {
  readonly allowList: readonly TextItem[];
  readonly denied: readonly string[];
  readonly granted: GrantList;
  readonly context: ImportContext;
  readonly log: ImportLog;
}

function grantTool({ path, text }: TextItem, { allowList, denied, granted, context, log }: Selection): void {
  const name = text.trim();
  const local = localPattern(name, context);
  const skip = (note: string): void => log.add(path, 'NotImported', { value: text, note });
  if (allowList.length > 0 && !allowList.some((entry) => matchesStars(entry.text, name)))
    return skip('tool_allowlist does not contain it');
  if (local === undefined) {
    const { result, note } = absenceOf(name);
    return log.add(path, result, { value: text, note });
  }
  if (context.patterns.covers(denied, local, 'tool')) return skip('spec.denyTools denies it');
  const note = name === '*' ? 'every tool, also those of later versions' : undefined;
  granted.add(path, text, local, note, TOOL_NOTES.get(local));
}

/** The pattern here for a tool or a pattern of OpenFang; undefined when it matches no tool. */
function localPattern(name: string, { tools, patterns }: ImportContext): string | undefined {
  const local = RENAMED_TOOLS.get(name) ?? name;
  if (!local.includes('*')) return tools.some((tool) => tool.name === local) ? local : undefined;
  return isToolPattern(local, patterns) && tools.some((tool) => patterns.covers([local], tool.name, 'tool'))
    ? local
    : undefined;
}

function isToolPattern(text: string, patterns: PatternRules): boolean {
  return patterns.patternError(text, 'tool') === undefined;
}

/** A denial is imported also for a tool that does not exist here: a later one of its name stays denied. */
function importDenied(source: JsonObject, context: ImportContext, log: ImportLog): readonly string[] {
  const denied = new GrantList('spec.denyTools', 'tool', context.patterns, log);
  const path = ['tool_blocklist'];
  for (const { path: at, text } of textsAt(source, path, log)) {
    const name = text.trim();
    if (!name.includes('*')) for (const local of deniedBy(name)) denied.add(at, text, local);
    else denyPattern(at, text, denied, context);
  }
  if (isEmptyList(source, path)) log.imported(path, [], 'spec.denyTools', 'an empty list blocks nothing');
  const mayWrite = booleanAt(source, ALLOW_WRITE, log);
  if (mayWrite === false) denied.add(ALLOW_WRITE, 'false', 'file_write', 'denies file_write');
  if (mayWrite === true) log.imported(ALLOW_WRITE, true, 'spec.grants.tools', 'if capabilities.tools has file_write');
  return denied.patterns;
}

/** The tools here that a denial of this tool of OpenFang denies. */
function deniedBy(name: string): readonly string[] {
  return SENDING_TOOLS.has(name) ? [...SENDING_TOOLS] : [RENAMED_TOOLS.get(name) ?? name];
}

/** The pattern, and what the tools of OpenFang that it matches are here when they have other names. */
function denyPattern(at: FieldPath, text: string, denied: GrantList, { patterns }: ImportContext): void {
  const pattern = text.trim();
  denied.add(at, text, pattern);
  const added = new Set<string>();
  for (const name of [...OPENFANG_TOOLS].filter((tool) => matchesStars(pattern, tool))) {
    for (const local of deniedBy(name)) {
      if (added.has(local) || patterns.covers([pattern], local, 'tool')) continue;
      added.add(local);
      denied.add(at, text, local, `matches ${name}, so it denies ${local} too`);
    }
  }
}

function logAllowList(source: JsonObject, allowList: readonly TextItem[], log: ImportLog): void {
  const path = ['tool_allowlist'];
  for (const { path: at, text } of allowList)
    log.imported(at, text, 'spec.grants.tools', 'limits the tools that are granted');
  if (isEmptyList(source, path)) log.imported(path, [], 'spec.grants.tools', 'an empty list limits nothing');
}
