import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { type Digest, shortDigest } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { validateArtifact } from '../artifact-validation.ts';
import { hasViolations } from '../gate-recorder.ts';
import { checkArtifactRules } from './artifact-rules.ts';
import { checkHiddenText } from './hidden-text.ts';
import { checkSecrets } from './secrets.ts';
import { checkSource, type StaticCheck } from './static.ts';
import { parseArtifact, type ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';
import { printable } from '../../lib/printable.ts';
import { validateSchema } from '../../tools/json-schema/compiler.ts';

/** An untrusted artifact, and the digest that its author declares, if any. */
export interface SubmittedArtifact {
  artifact: Json;
  digest: Digest | undefined;
}

/** What the artifact alone says at each gate. After the first gate with violations the others are empty. */
export interface ArtifactInspection {
  /** Absent for an artifact that cannot be read; `shape` then has the reason. */
  open?: ParsedArtifact;
  shape: ForgeViolation[];
  /** The static check of the source, and secrets. The steps of a composed tool need the tools of the agent and are not in it. */
  code: StaticCheck;
  schemas: ForgeViolation[];
  build: ForgeViolation[];
}

/**
 * The part of the static gates that is expensive and depends on the artifact alone: parsing, patterns, the source, schemas.
 * Argument and result are plain data that can be cloned, so a worker thread can run it, and a cache can keep it by digest.
 */
export function inspectArtifact({ artifact, digest }: SubmittedArtifact): ArtifactInspection {
  const nothing: ArtifactInspection = { shape: [], code: { violations: [], warnings: [] }, schemas: [], build: [] };
  const open = openArtifact(artifact);
  if ('violations' in open) return { ...nothing, shape: open.violations };
  const shape = checkText(open);
  if (hasViolations(shape)) return { ...nothing, open, shape: [...shape] };
  const code = checkCode(open);
  if (hasViolations(code.violations)) return { ...nothing, open, code };
  const schemas = checkSchemas(open);
  const build = hasViolations(schemas) ? [] : checkDigest(open, digest);
  return { open, shape: [], code, schemas, build };
}

function openArtifact(artifact: Json): ParsedArtifact | { violations: ForgeViolation[] } {
  const problems = validateArtifact(artifact).map(shapeViolation);
  if (hasViolations(problems)) return { violations: [...problems] };
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

function checkCode({ artifact }: ParsedArtifact): StaticCheck {
  const { implementation, requires } = artifact;
  const { violations, warnings } =
    implementation.source === undefined
      ? { violations: [], warnings: [] }
      : checkSource(implementation.source, requires.apis);
  return { violations: [...violations, ...checkSecrets(artifact)], warnings };
}

/** Validates both schemas, which come from an untrusted author. Returns every malformed, dangerous and misspelled part. */
function checkSchemas({ inputSchema, outputSchema }: ParsedArtifact): ForgeViolation[] {
  const found = [...validateSchema(inputSchema, 'inputSchema'), ...validateSchema(outputSchema, 'outputSchema')];
  return found.map(({ problem, path, message }) => ({
    code: problem === 'unknown-keyword' ? 'TEMPER_FORGE_EXTRA_FIELD' : 'TEMPER_FORGE_SCHEMA',
    message: printable(`${path}: ${message}`, 400),
  }));
}

function checkDigest(open: ParsedArtifact, declared: Digest | undefined): ForgeViolation[] {
  if (declared === undefined || declared === open.digest) return [];
  const message = `the tool has digest ${shortDigest(open.digest)}, not ${shortDigest(declared)} as declared; rebuild it from its source`;
  return [{ code: 'TEMPER_PACKAGE_INVALID', message }];
}
