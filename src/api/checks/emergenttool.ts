import { digestOf } from '../../lib/canonical.ts';
import { type Json, isJsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { dottedPath } from '../findings.ts';
import type { Finding, Path, PatternRules, Sound } from '../findings.ts';
import { parseDuration, parseQuantityBytes } from '../quantities.ts';
import type { EmergentToolSpec } from '../v1alpha1/emergenttool.ts';
import { checkMeasures, checkPatterns, itemsOf, quoted } from './shared.ts';

type Spec = Sound<EmergentToolSpec>;
type Check = (spec: Spec, patterns: PatternRules) => Finding[];

/** Client-side apply keeps a second copy in an annotation of at most 256 KiB. */
const LARGEST_ARTIFACT = 128 * 1024;
const ARTIFACT = ['spec', 'artifact'];
const IMPLEMENTATION = [...ARTIFACT, 'implementation'];

/** What an EmergentTool must keep between its own fields. */
export const EMERGENT_TOOL_CHECKS: readonly Check[] = [
  modeHasItsParts,
  stepNamesAreUnique,
  jsonTextsParse,
  needsHaveTheirHosts,
  patternsAreWellFormed,
  limitsAreInRange,
];

/** Only of an artifact that breaks no other rule: the digest of half an artifact says nothing. */
export function digestMatches(artifact: Json, digest: string): Finding[] {
  const actual = digestOrFault(artifact);
  if (actual === digest) return [];
  return [
    {
      path: ['spec', 'digest'],
      rule: 'digest',
      message: `spec.digest is not the digest of spec.artifact, which is ${actual}`,
      fix: 'restore the artifact this digest was made from, or forge the tool anew; a tool is its digest',
    },
  ];
}

/** Text that is not well-formed Unicode has no canonical form, hence no digest. */
function digestOrFault(artifact: Json): string {
  try {
    return digestOf(artifact);
  } catch (error) {
    if (error instanceof RangeError) return `not defined: ${error.message}`;
    throw error;
  }
}

export function artifactIsSmall(artifact: Json): Finding[] {
  const size = Buffer.byteLength(JSON.stringify(artifact));
  if (size <= LARGEST_ARTIFACT) return [];
  const message = `spec.artifact has ${size} bytes`;
  return [{ path: ARTIFACT, rule: 'artifact-size', message, fix: `keep it within ${LARGEST_ARTIFACT} bytes` }];
}

function modeHasItsParts(spec: Spec): Finding[] {
  const { mode, source, steps } = spec.artifact?.implementation ?? {};
  if (mode === undefined) return [];
  const [needed, other] = mode === 'Sandbox' ? (['source', 'steps'] as const) : (['steps', 'source'] as const);
  const given = { source, steps };
  const findings: Finding[] = [];
  if (given[needed] === undefined)
    findings.push(modeFinding([...IMPLEMENTATION, needed], mode, 'needs', `add ${needed}`));
  if (given[other] !== undefined)
    findings.push(modeFinding([...IMPLEMENTATION, other], mode, 'takes no', `remove ${other}`));
  return findings;
}

function modeFinding(path: Path, mode: string, verb: string, fix: string): Finding {
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
    return [{ path: [...path, 'name'], rule: 'step-name', message, fix: 'give each step a name of its own' }];
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

function jsonText(text: string | undefined, path: Path, schema: boolean): Finding[] {
  if (text === undefined) return [];
  const fix = schema ? 'write a JSON Schema as JSON text, e.g. \'{"type":"object"}\'' : 'write the value as JSON text';
  try {
    const value = parseUntrustedJson(text);
    if (!schema || isJsonObject(value)) return [];
    return [{ path, rule: 'json-text', message: `${dottedPath(path)} is no schema: it must be an object`, fix }];
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    return [{ path, rule: 'json-text', message: `${dottedPath(path)} is not JSON`, fix }];
  }
}

function needsHaveTheirHosts(spec: Spec): Finding[] {
  const requires = spec.artifact?.requires;
  const pairs = [
    { list: requires?.domains, field: 'domains', api: 'fetch' },
    { list: requires?.paths, field: 'paths', api: 'fs.readFile' },
  ] as const;
  return pairs.flatMap(({ list, field, api }): Finding[] => {
    if (list === undefined || list.length === 0 || requires?.apis === undefined || requires.apis.includes(api))
      return [];
    const path = [...ARTIFACT, 'requires', field];
    const message = `${dottedPath(path)} says where, but the tool does not ask for ${api}`;
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
  return checkMeasures([
    {
      path: [...ARTIFACT, 'limits', 'duration'],
      value: limits?.duration,
      parse: parseDuration,
      minimum: 1,
      maximum: 30_000,
      allowed: 'a duration from 1ms to 30s',
    },
    {
      path: [...ARTIFACT, 'limits', 'memory'],
      value: limits?.memory,
      parse: parseQuantityBytes,
      minimum: 8 * 1024 ** 2,
      maximum: 1024 ** 3,
      allowed: 'bytes from 8Mi to 1Gi',
    },
  ]);
}
