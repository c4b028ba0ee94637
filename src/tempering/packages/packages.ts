import { stringify } from 'yaml';
import type { ComposeStep, ToolArtifact, ToolTest } from '../../api/v1alpha1/emergenttool.ts';
import { parseDocuments } from '../../api/yaml-documents.ts';
import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../../lib/json.ts';
import type { RegisteredTool } from '../types.ts';

const PACKAGE_SCHEMA = 'agentos.emergent-tool.v1';
const MAX_CHARACTERS = 512 * 1024;

export interface ExportOptions {
  form: 'yaml' | 'json';
  /** RFC 3339. */
  exportedAt: string;
  /** Omit the source. Such a package is for review only and cannot be imported. */
  redact?: boolean;
}

/** The forge request in a package. It has no special trust: all statements of the package about itself are ignored. */
export interface PackagedTool {
  name: string;
  request: JsonObject;
  /** The digest stated in the package. The tool built from the request must have the same digest. */
  digest?: Digest;
  /** Describes each dropped member. */
  warnings: string[];
}

/** What a package says about a tool. */
export type PackageSource = Pick<
  RegisteredTool,
  'object' | 'artifact' | 'digest' | 'tier' | 'verdicts' | 'acceptedAt' | 'sourceWithheld'
> & { owner: Pick<RegisteredTool['owner'], 'agent'> };

/** Exports a tool as a portable package. Throws TEMPER_PACKAGE_INVALID for an artifact with a text that is no JSON. */
export function exportPackage(tool: PackageSource, options: ExportOptions): string {
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
        : portabilityWarnings(artifact),
    },
    tool: {
      originalToolId: tool.object.slice(tool.object.lastIndexOf('/') + 1),
      originalTier: tool.tier.toLowerCase(),
      name: artifact.name,
      description: artifact.description,
      inputSchema: jsonIn(artifact.inputSchema, 'tool.inputSchema'),
      outputSchema: jsonIn(artifact.outputSchema, 'tool.outputSchema'),
      implementation: packagedImplementation(artifact, redacted),
      testCases: artifact.tests.map((test, index) => packagedTest(test, `tool.testCases[${index}]`)),
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

function portabilityWarnings(artifact: ToolArtifact): string[] {
  const pinned = (artifact.implementation.steps ?? []).filter(({ tool }) => tool.includes('@')).map(({ tool }) => tool);
  return pinned.length === 0 ? [] : [`The receiving agent needs these very tools: ${pinned.join(', ')}`];
}

function packagedImplementation(artifact: ToolArtifact, redacted: boolean): JsonObject {
  const { mode, source, steps } = artifact.implementation;
  const { apis, domains, paths } = artifact.requires;
  const allowlists = { ...(domains.length === 0 ? {} : { domains }), ...(paths.length === 0 ? {} : { paths }) };
  if (mode === 'Compose')
    return {
      mode: 'compose',
      steps: (steps ?? []).map((step, index) => packagedStep(step, `tool.steps[${index}]`)),
      ...allowlists,
    };
  return {
    mode: 'sandbox',
    allowlist: apis,
    ...allowlists,
    sourcePersisted: !redacted,
    redactedAtRest: redacted,
    ...(redacted || source === undefined ? { codeBytes: Buffer.byteLength(source ?? '') } : { code: source }),
  };
}

function packagedStep({ inputMapping, ...step }: ComposeStep, at: string): JsonObject {
  return { ...step, inputMapping: jsonIn(inputMapping, `${at}.inputMapping`) };
}

function packagedTest({ input, expectedOutput, fixtures = [] }: ToolTest, at: string): JsonObject {
  const packaged = fixtures.map((fixture, index) => packagedFixture(fixture, `${at}.fixtures[${index}]`));
  return {
    input: jsonIn(input, `${at}.input`),
    ...(expectedOutput === undefined ? {} : { expectedOutput: jsonIn(expectedOutput, `${at}.expectedOutput`) }),
    ...(packaged.length === 0 ? {} : { fixtures: packaged }),
  };
}

function packagedFixture({ tool, input, output }: NonNullable<ToolTest['fixtures']>[number], at: string): JsonObject {
  return {
    tool,
    ...(input === undefined ? {} : { input: jsonIn(input, `${at}.input`) }),
    output: jsonIn(output, `${at}.output`),
  };
}

/** A member that an artifact has as JSON text. An object of a cluster may have another text, which its verification refuses. */
function jsonIn(text: string, at: string): Json {
  try {
    // Keeps every member: the digest covers them.
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid(at, 'is no JSON text');
    throw error;
  }
}

/**
 * Parses an untrusted package in YAML or JSON. Verdicts and statistics are always dropped. Throws TEMPER_PACKAGE_INVALID with the
 * path of the invalid member, also for a package without its source.
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
  for (const key of ['description', 'inputSchema', 'outputSchema', 'testCases', 'limits']) {
    const value = tool[key];
    if (value !== undefined && value !== null) request[key] = value;
  }
  const dropped = ['judgeVerdicts', 'usageStats'].filter((key) => tool[key] !== undefined);
  const warnings = dropped.map((key) => `tool.${key} was dropped: it is never imported`);
  return { name: printable(name, 80), request, ...digestOfPackage(tool), warnings };
}

function readPackage(text: string): JsonObject {
  if (text.length > MAX_CHARACTERS) throw invalid('the file', `has more than ${MAX_CHARACTERS} characters`);
  const { documents, errors } = parseDocuments(text);
  const [error] = errors;
  if (error !== undefined) {
    throw invalid(`line ${error.position.line}, column ${error.position.column}`, `${error.message}; ${error.fix}`);
  }
  const [document, second] = documents;
  if (document === undefined || second !== undefined) throw invalid('the file', 'must hold exactly one document');
  return objectAt(document.value, 'the file');
}

function importedImplementation(packaged: JsonObject): JsonObject {
  const implementation: JsonObject = { mode: packaged.mode ?? null };
  for (const key of ['allowlist', 'domains', 'paths']) {
    const value = packaged[key];
    if (value !== undefined) implementation[key] = value;
  }
  if (packaged.mode === 'compose') {
    if (!Array.isArray(packaged.steps)) throw invalid('tool.implementation.steps', 'must be a list');
    return { ...implementation, steps: packaged.steps };
  }
  if (packaged.mode !== 'sandbox') throw invalid('tool.implementation.mode', 'must be compose or sandbox');
  if (packaged.redactedAtRest === true || typeof packaged.code !== 'string') {
    throw invalid(
      'tool.implementation.code',
      'is missing: the package was exported without its source and is for review only',
    );
  }
  return { ...implementation, code: packaged.code };
}

function digestOfPackage(tool: JsonObject): { digest?: Digest } {
  const digest = member(tool, 'digest');
  if (digest === undefined) return {};
  if (typeof digest === 'string' && /^sha256:[0-9a-f]{64}$/.test(digest)) return { digest: digest as Digest };
  throw invalid('tool.digest', 'must be sha256: and 64 hexadecimal digits');
}

/** Throws TEMPER_PACKAGE_INVALID when the built tool does not have the digest stated in the package. */
export function assertPackageDigest(packaged: PackagedTool, built: Digest): void {
  if (packaged.digest === undefined || packaged.digest === built) return;
  throw invalid(
    'tool.digest',
    `is ${packaged.digest}, but the content has ${built}; the package was changed after it was made`,
  );
}

function objectAt(value: Json | undefined, path: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw invalid(path, 'must be an object');
}

function invalid(path: string, problem: string): TemperError {
  return new TemperError('TEMPER_PACKAGE_INVALID', `${path}: ${printable(problem, 400)}`);
}
