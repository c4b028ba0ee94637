import { stringify } from 'yaml';
import type { ComposeStep, ToolArtifact, ToolTest } from '../api/v1alpha1/emergenttool.ts';
import { parseDocuments } from '../api/yaml-documents.ts';
import type { Digest } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../lib/json.ts';
import type { RegisteredTool } from './types.ts';

const PACKAGE_SCHEMA = 'agentos.emergent-tool.v1';
const MAXIMUM_CHARACTERS = 512 * 1024;

export interface ExportOptions {
  form: 'yaml' | 'json';
  /** RFC 3339. */
  exportedAt: string;
  /** Leave the source out: for review only, such a package cannot be imported. */
  redact?: boolean;
}

/** What a package proposes. It is a forge request like any other: nothing the package says about itself is believed. */
export interface PackagedTool {
  name: string;
  request: JsonObject;
  /** The digest it claims. The tool that comes of the request must have it. */
  digest?: Digest;
  /** What was dropped, in words. */
  warnings: string[];
}

/** A tool as a portable package. */
export function exportPackage(tool: RegisteredTool, options: ExportOptions): string {
  const { artifact } = tool;
  const redacted = artifact.implementation.mode === 'Sandbox' && (options.redact === true || tool.sourceWithheld);
  const content: JsonObject = {
    schemaVersion: PACKAGE_SCHEMA,
    packageType: 'emergent-tool',
    exportedAt: options.exportedAt,
    portability: {
      portable: !redacted,
      warnings: redacted
        ? ['The source was left out. The package can be reviewed and not imported.']
        : portabilityNotes(artifact),
    },
    tool: {
      originalToolId: tool.object.slice(tool.object.lastIndexOf('/') + 1),
      originalTier: tool.tier.toLowerCase(),
      name: artifact.name,
      description: artifact.description,
      inputSchema: JSON.parse(artifact.inputSchema) as Json,
      outputSchema: JSON.parse(artifact.outputSchema) as Json,
      implementation: packagedImplementation(artifact, redacted),
      testCases: artifact.tests.map(packagedTest),
      limits: { ...artifact.limits },
      digest: tool.digest,
      createdBy: tool.owner.agent,
      createdAt: tool.acceptedAt,
      source: 'forged',
      judgeVerdicts: tool.verdicts as unknown as Json,
    },
  };
  return options.form === 'json'
    ? `${JSON.stringify(content, null, 2)}\n`
    : stringify(content, { lineWidth: 0, aliasDuplicateObjects: false });
}

function portabilityNotes(artifact: ToolArtifact): string[] {
  const pinned = (artifact.implementation.steps ?? []).filter(({ tool }) => tool.includes('@')).map(({ tool }) => tool);
  return pinned.length === 0 ? [] : [`The receiving agent needs these very tools: ${pinned.join(', ')}`];
}

function packagedImplementation(artifact: ToolArtifact, redacted: boolean): JsonObject {
  const { mode, source, steps } = artifact.implementation;
  const { apis, domains, paths } = artifact.requires;
  const places = { ...(domains.length === 0 ? {} : { domains }), ...(paths.length === 0 ? {} : { paths }) };
  if (mode === 'Compose') return { mode: 'compose', steps: (steps ?? []).map(packagedStep), ...places };
  return {
    mode: 'sandbox',
    allowlist: apis,
    ...places,
    sourcePersisted: !redacted,
    redactedAtRest: redacted,
    ...(redacted || source === undefined ? { codeBytes: Buffer.byteLength(source ?? '') } : { code: source }),
  };
}

function packagedStep({ inputMapping, ...step }: ComposeStep): JsonObject {
  return { ...step, inputMapping: JSON.parse(inputMapping) as Json };
}

function packagedTest({ input, expectedOutput, fixtures }: ToolTest): JsonObject {
  return {
    input: JSON.parse(input) as Json,
    ...(expectedOutput === undefined ? {} : { expectedOutput: JSON.parse(expectedOutput) as Json }),
    ...(fixtures === undefined || fixtures.length === 0 ? {} : { fixtures: fixtures.map(packagedFixture) }),
  };
}

function packagedFixture({ tool, input, output }: NonNullable<ToolTest['fixtures']>[number]): JsonObject {
  return {
    tool,
    ...(input === undefined ? {} : { input: JSON.parse(input) as Json }),
    output: JSON.parse(output) as Json,
  };
}

/**
 * Reads YAML or JSON of a stranger. Verdicts and statistics are dropped, whoever gave them. Throws TEMPER_PACKAGE_INVALID with the
 * place, also for a package without its source.
 */
export function parsePackage(text: string): PackagedTool {
  const content = readPackage(text);
  if (content.schemaVersion !== PACKAGE_SCHEMA) throw invalid('schemaVersion', `must be ${PACKAGE_SCHEMA}`);
  if (content.packageType !== undefined && content.packageType !== 'emergent-tool')
    throw invalid('packageType', 'must be emergent-tool');
  const tool = objectAt(content.tool, 'tool');
  const { name } = tool;
  if (typeof name !== 'string') throw invalid('tool.name', 'must be a text');
  const implementation = importedImplementation(objectAt(tool.implementation, 'tool.implementation'));
  const request: JsonObject = { name, implementation };
  for (const part of ['description', 'inputSchema', 'outputSchema', 'testCases', 'limits']) {
    const value = tool[part];
    if (value !== undefined && value !== null) request[part] = value;
  }
  const dropped = ['judgeVerdicts', 'usageStats'].filter((part) => tool[part] !== undefined);
  const warnings = dropped.map((part) => `tool.${part} was dropped: a tool earns its own`);
  return { name: printable(name, 80), request, ...digestOfPackage(tool), warnings };
}

function readPackage(text: string): JsonObject {
  if (text.length > MAXIMUM_CHARACTERS) throw invalid('the file', `has more than ${MAXIMUM_CHARACTERS} characters`);
  const { documents, flaws } = parseDocuments(text);
  const [flaw] = flaws;
  if (flaw !== undefined) {
    throw invalid(`line ${flaw.position.line}, column ${flaw.position.column}`, `${flaw.message}; ${flaw.fix}`);
  }
  const [document, second] = documents;
  if (document === undefined || second !== undefined) throw invalid('the file', 'must hold exactly one document');
  return objectAt(document.value, 'the file');
}

function importedImplementation(given: JsonObject): JsonObject {
  const implementation: JsonObject = { mode: given.mode ?? null };
  for (const part of ['allowlist', 'domains', 'paths']) {
    const value = given[part];
    if (value !== undefined) implementation[part] = value;
  }
  if (given.mode === 'compose') {
    if (!Array.isArray(given.steps)) throw invalid('tool.implementation.steps', 'must be a list');
    return { ...implementation, steps: given.steps };
  }
  if (given.mode !== 'sandbox') throw invalid('tool.implementation.mode', 'must be compose or sandbox');
  if (given.redactedAtRest === true || typeof given.code !== 'string') {
    throw invalid(
      'tool.implementation.code',
      'is missing: the package was exported without its source and is for review only',
    );
  }
  return { ...implementation, code: given.code };
}

function digestOfPackage(tool: JsonObject): { digest?: Digest } {
  const digest = member(tool, 'digest');
  if (digest === undefined) return {};
  if (typeof digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(digest)) return { digest: digest as Digest };
  throw invalid('tool.digest', 'must be sha256: and 64 hexadecimal digits');
}

/** Throws TEMPER_PACKAGE_INVALID when the tool that came of a package is not the one the package names. */
export function assertPackageDigest(packaged: PackagedTool, built: Digest): void {
  if (packaged.digest === undefined || packaged.digest === built) return;
  throw invalid(
    'tool.digest',
    `is ${packaged.digest}, but the content has ${built}; the package was changed after it was made`,
  );
}

function objectAt(value: Json | undefined, place: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw invalid(place, 'must be an object');
}

function invalid(place: string, problem: string): TemperError {
  return new TemperError('TEMPER_PACKAGE_INVALID', `${place}: ${printable(problem, 400)}`);
}
