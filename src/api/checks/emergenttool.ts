import { digestOf } from '../../lib/canonical.ts';
import { type Json, isJsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { dottedPath } from '../findings.ts';
import type { Finding, FieldPath, PatternRules, ValidPart } from '../findings.ts';
import { TOOL_LIMIT_BOUNDS } from '../tool-limits.ts';
import { parseDuration, parseQuantityBytes } from '../quantities.ts';
import type { EmergentToolSpec } from '../v1alpha1/emergenttool.ts';
import { checkMeasures, checkPatterns, itemsOf, quoted } from './shared.ts';

type Spec = ValidPart<EmergentToolSpec>;
type EmergentToolCheck = (spec: Spec, patterns: PatternRules) => Finding[];

/** Client-side apply stores a second copy in an annotation; all annotations together have at most 256 KiB. */
const MAX_ARTIFACT_BYTES = 128 * 1024;
const ARTIFACT = ['spec', 'artifact'];
const IMPLEMENTATION = [...ARTIFACT, 'implementation'];

/** Cross-field rules of an EmergentTool. */
export const EMERGENT_TOOL_CHECKS: readonly EmergentToolCheck[] = [
  modeHasItsFields,
  sharedHasItsSource,
  stepNamesAreUnique,
  jsonTextsParse,
  requirementsNameTheirApis,
  patternsAreWellFormed,
  limitsAreInRange,
];

/** Call only for an artifact that violates no other rule: the digest of an incomplete artifact has no meaning. */
export function digestMatches(artifact: Json, digest: string): Finding[] {
  const actual = digestOrError(artifact);
  if (actual === digest) return [];
  return [
    {
      path: ['spec', 'digest'],
      rule: 'digest',
      message: `spec.digest is not the digest of spec.artifact, which is ${actual}`,
      fix: 'restore the artifact that belongs to this digest, or forge the tool again; the digest identifies the tool',
    },
  ];
}

/** A string that is not well-formed Unicode has no canonical form, and so no digest. */
function digestOrError(artifact: Json): string {
  try {
    return digestOf(artifact);
  } catch (error) {
    if (error instanceof RangeError) return `not defined: ${error.message}`;
    throw error;
  }
}

export function artifactIsSmall(artifact: Json): Finding[] {
  const size = Buffer.byteLength(JSON.stringify(artifact));
  if (size <= MAX_ARTIFACT_BYTES) return [];
  const message = `spec.artifact has ${size} bytes`;
  return [{ path: ARTIFACT, rule: 'artifact-size', message, fix: `keep it within ${MAX_ARTIFACT_BYTES} bytes` }];
}

function modeHasItsFields(spec: Spec): Finding[] {
  const { mode, source, steps } = spec.artifact?.implementation ?? {};
  if (mode === undefined) return [];
  const [needed, other] = mode === 'Sandbox' ? (['source', 'steps'] as const) : (['steps', 'source'] as const);
  const given = { source, steps };
  const isWithheld = mode === 'Sandbox' && spec.withheldSource !== undefined;
  const findings: Finding[] = [];
  if (isWithheld && source !== undefined)
    findings.push({
      path: ['spec', 'withheldSource'],
      rule: 'withheld-source',
      message: 'spec.withheldSource stands in the place of a source, and the artifact has one',
      fix: 'remove one of the two',
    });
  if (!isWithheld && given[needed] === undefined)
    findings.push(modeFinding([...IMPLEMENTATION, needed], mode, 'requires', `add ${needed}`));
  if (given[other] !== undefined)
    findings.push(modeFinding([...IMPLEMENTATION, other], mode, 'does not allow', `remove ${other}`));
  return findings;
}

function sharedHasItsSource({ tier, withheldSource }: Spec): Finding[] {
  if (tier !== 'Shared' || withheldSource === undefined) return [];
  return [
    {
      path: ['spec', 'withheldSource'],
      rule: 'withheld-source',
      message: 'a tool is shared with its source, because an approver must read what he approves',
      fix: 'set forge.persistSource of the agent and forge the tool again',
    },
  ];
}

function modeFinding(path: FieldPath, mode: string, verb: string, fix: string): Finding {
  return { path, rule: 'mode', message: `mode ${mode} ${verb} ${dottedPath(path)}`, fix };
}

function stepNamesAreUnique(spec: Spec): Finding[] {
  const seen = new Set<string>();
  const steps = itemsOf(spec.artifact?.implementation?.steps, [...IMPLEMENTATION, 'steps']);
  return [...steps].flatMap(([{ name }, path]): Finding[] => {
    if (name === undefined || !seen.has(name)) {
      if (name !== undefined) seen.add(name);
      return [];
    }
    const message = `step name ${quoted(name)} is used twice`;
    return [{ path: [...path, 'name'], rule: 'step-name', message, fix: 'give each step a unique name' }];
  });
}

function jsonTextsParse(spec: Spec): Finding[] {
  const { artifact } = spec;
  const findings = [
    ...jsonText(artifact?.inputSchema, [...ARTIFACT, 'inputSchema'], true),
    ...jsonText(artifact?.outputSchema, [...ARTIFACT, 'outputSchema'], true),
  ];
  for (const [step, path] of itemsOf(artifact?.implementation?.steps, [...IMPLEMENTATION, 'steps'])) {
    findings.push(...jsonText(step.inputMapping, [...path, 'inputMapping'], false));
  }
  for (const [test, path] of itemsOf(artifact?.tests, [...ARTIFACT, 'tests'])) {
    findings.push(...jsonText(test.input, [...path, 'input'], false));
    findings.push(...jsonText(test.expectedOutput, [...path, 'expectedOutput'], false));
    for (const [fixture, at] of itemsOf(test.fixtures, [...path, 'fixtures'])) {
      findings.push(...jsonText(fixture.input, [...at, 'input'], false));
      findings.push(...jsonText(fixture.output, [...at, 'output'], false));
    }
  }
  return findings;
}

function jsonText(text: string | undefined, path: FieldPath, schema: boolean): Finding[] {
  if (text === undefined) return [];
  const fix = schema ? 'write a JSON Schema as JSON text, e.g. \'{"type":"object"}\'' : 'write the value as JSON text';
  try {
    const value = parseUntrustedJson(text);
    if (!schema || isJsonObject(value)) return [];
    return [
      { path, rule: 'json-text', message: `${dottedPath(path)} is not a JSON Schema: it must be an object`, fix },
    ];
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    return [{ path, rule: 'json-text', message: `${dottedPath(path)} is not JSON`, fix }];
  }
}

function requirementsNameTheirApis(spec: Spec): Finding[] {
  const requires = spec.artifact?.requires;
  const pairs = [
    { list: requires?.domains, field: 'domains', api: 'fetch' },
    { list: requires?.paths, field: 'paths', api: 'fs.readFile' },
  ] as const;
  return pairs.flatMap(({ list, field, api }): Finding[] => {
    if (list === undefined || list.length === 0 || requires?.apis === undefined || requires.apis.includes(api))
      return [];
    const path = [...ARTIFACT, 'requires', field];
    const message = `${dottedPath(path)} has entries, but requires.apis does not contain ${api}`;
    return [{ path, rule: 'requires', message, fix: `add ${api} to requires.apis, or empty the list` }];
  });
}

function patternsAreWellFormed(spec: Spec, rules: PatternRules): Finding[] {
  const requires = spec.artifact?.requires;
  return [
    ...checkPatterns(rules, 'host', requires?.domains, [...ARTIFACT, 'requires', 'domains']),
    ...checkPatterns(rules, 'path', requires?.paths, [...ARTIFACT, 'requires', 'paths']),
  ];
}

function limitsAreInRange(spec: Spec): Finding[] {
  const limits = spec.artifact?.limits;
  const { durationMs, composedDurationMs, memoryBytes } = TOOL_LIMIT_BOUNDS;
  return checkMeasures([
    {
      path: [...ARTIFACT, 'limits', 'duration'],
      value: limits?.duration,
      parse: parseDuration,
      ...(spec.artifact?.implementation?.mode === 'Compose' ? composedDurationMs : durationMs),
    },
    {
      path: [...ARTIFACT, 'limits', 'memory'],
      value: limits?.memory,
      parse: parseQuantityBytes,
      ...memoryBytes,
    },
  ]);
}
