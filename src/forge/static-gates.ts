import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { type Digest, shortDigest } from '../lib/canonical.ts';
import type { Json } from '../lib/json.ts';
import type { SchemaCompiler } from '../tools/json-schema/compiler.ts';
import { validateArtifact } from './artifact-validation.ts';
import { type GateRecorder, hasViolations } from './gate-recorder.ts';
import { checkArtifactRules } from './gates/artifact-rules.ts';
import { checkSteps } from './gates/compose.ts';
import { checkHiddenText } from './gates/hidden-text.ts';
import { checkPolicyLimits, type StaticGateContext } from './gates/policy-limits.ts';
import { checkSchemas } from './gates/schemas.ts';
import { checkSecrets } from './gates/secrets.ts';
import { checkSource, type StaticCheck } from './gates/static.ts';
import { parseArtifact, type ParsedArtifact } from './parse-artifact.ts';
import type { ForgeViolation } from './request.ts';
import type { TypeStripper } from './source-repair/refusal-reasons.ts';
import type { JudgeMaterial, RefusedTool } from './types.ts';

/** An untrusted artifact, and the digest that its author declares, if any. */
export interface SubmittedArtifact {
  artifact: Json;
  digest: Digest | undefined;
}

export interface StaticGatesPassed {
  open: ParsedArtifact;
  warnings: string[];
}

/**
 * What the artifact alone decides, and what takes time: the rules of its shape, its source and its schemas. It can be cloned, so that a
 * review may run in another thread.
 */
export interface ArtifactVetting {
  shape: readonly ForgeViolation[];
  code: StaticCheck;
  schemas: readonly ForgeViolation[];
  /** What the judge reads of an artifact without violations, when the caller of `vetArtifact` asked for it. */
  material?: JudgeMaterial;
}

/** What else `vetArtifact` is to do. */
export interface VettingOptions {
  /** Builds what the judge reads; called only for an artifact without violations, whose size is therefore bounded. */
  present?: (artifact: ToolArtifact) => JudgeMaterial;
  /** Keeps the compiled schemas for later checks of values. */
  schemaCompiler?: SchemaCompiler;
  /** Explains the syntax errors of TypeScript; for the author's side only, because it may take seconds. */
  stripTypes?: TypeStripper;
}

/** Pure: equal artifacts have equal results. A part after one with violations is empty, because no gate asks for it. */
export function vetArtifact(
  artifact: Json,
  { present, schemaCompiler, stripTypes }: VettingOptions = {},
): ArtifactVetting {
  const nothing: ArtifactVetting = { shape: [], code: { violations: [], warnings: [] }, schemas: [] };
  const open = openArtifact(artifact);
  if ('violations' in open) return nothing;
  const shape = checkText(open);
  if (hasViolations(shape)) return { ...nothing, shape };
  const code = checkCode(open, stripTypes);
  if (hasViolations(code.violations)) return { ...nothing, code };
  const schemas = checkSchemas(open, schemaCompiler);
  const material = hasViolations(schemas) ? undefined : present?.(open.artifact);
  return { ...nothing, code, schemas, ...(material === undefined ? {} : { material }) };
}

/**
 * Runs the gates that execute no code of the tool: shape, static, schemas, build and the policy limits, the cheapest first.
 * The author's side and the review both call this function, so the review repeats exactly what the author's side ran.
 * The policy limits are not recorded as passed: only the review decides them. `vetting` is the result of `vetArtifact` for this artifact.
 */
export function runStaticGates(
  { artifact, digest }: SubmittedArtifact,
  context: StaticGateContext,
  log: GateRecorder,
  vetting: ArtifactVetting = vetArtifact(artifact),
): StaticGatesPassed | RefusedTool {
  const open = openArtifact(artifact);
  if ('violations' in open) return log.refuse('shape', open.violations);
  log.digest = open.digest;
  const { shape, schemas, code } = vetting;
  if (hasViolations(shape)) return log.refuse('shape', shape);
  log.pass('shape');
  const violations = [...stepViolations(open, context), ...code.violations];
  const { warnings } = code;
  if (hasViolations(violations)) return log.refuse('static', violations);
  log.pass('static', warnings.length === 0 ? '' : `${warnings.length} warnings`);
  if (hasViolations(schemas)) return log.refuse('schemas', schemas);
  log.pass('schemas');
  const build = checkDigest(open, digest);
  if (hasViolations(build)) return log.refuse('build', build);
  log.pass('build', shortDigest(open.digest));
  const limits = checkPolicyLimits(open, context);
  if (hasViolations(limits)) return log.refuse('policy', limits);
  return { open, warnings };
}

function openArtifact(artifact: Json): ParsedArtifact | { violations: readonly [ForgeViolation, ...ForgeViolation[]] } {
  const problems = validateArtifact(artifact).map(shapeViolation);
  if (hasViolations(problems)) return { violations: problems };
  const open = parseArtifact(artifact as unknown as ToolArtifact);
  return 'malformed' in open ? { violations: [shapeViolation(open.malformed)] } : open;
}

function shapeViolation(message: string): ForgeViolation {
  return { code: 'TEMPER_FORGE_SHAPE', message };
}

function checkText(open: ParsedArtifact): readonly ForgeViolation[] {
  const hidden = checkHiddenText(open.artifact);
  return hasViolations(hidden) ? hidden : checkArtifactRules(open);
}

/** The static check of the source, and the search for secrets. */
function checkCode({ artifact }: ParsedArtifact, strip: TypeStripper | undefined): StaticCheck {
  const { source } = artifact.implementation;
  const { violations, warnings } =
    source === undefined ? { violations: [], warnings: [] } : checkSource(source, artifact.requires.apis, strip);
  return { violations: [...violations, ...checkSecrets(artifact)], warnings };
}

function stepViolations(open: ParsedArtifact, context: StaticGateContext): ForgeViolation[] {
  return open.artifact.implementation.source === undefined ? checkSteps(open, context) : [];
}

function checkDigest(open: ParsedArtifact, declared: Digest | undefined): ForgeViolation[] {
  if (declared === undefined || declared === open.digest) return [];
  const message = `the tool has digest ${shortDigest(open.digest)}, not ${shortDigest(declared)} as declared; rebuild it from its source`;
  return [{ code: 'TEMPER_PACKAGE_INVALID', message }];
}
