import type { ForgeMode, ToolApi } from '../api/v1alpha1/common.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { DROP_TOOL_NAME, FORGE_TOOL_NAME } from '../tools/forge-test-call.ts';

/** One violation of a rule by a request or a tool. `message` is printable and names the location, the rule and the remedy. */
export interface ForgeViolation {
  code: ErrorCode;
  message: string;
}

/** The output that a test uses in place of a call to a tool or host function with side effects. */
export interface ToolFixture {
  /** Name of the tool without digest; `fetch` or `fs_read_file` for the host functions. */
  tool: string;
  /** The arguments that this fixture matches; absent matches any. */
  input?: Json;
  output: Json;
}

export interface TestCase {
  input: JsonObject;
  /** Absent: the author only states that the output matches its schema. */
  expectedOutput?: Json;
  fixtures: ToolFixture[];
}

export interface RequestedStep {
  name: string;
  /** A tool's name, or `name@sha256:…`. */
  tool: string;
  inputMapping: JsonObject;
  condition?: string;
}

export type Implementation =
  | { mode: Extract<ForgeMode, 'Sandbox'>; source: string }
  | { mode: Extract<ForgeMode, 'Compose'>; steps: RequestedStep[] };

/** A forge request of valid shape: every member is present and has the right type. No other gate has run yet. */
export interface ForgeRequest {
  name: string;
  description: string;
  inputSchema: JsonObject;
  outputSchema: JsonObject;
  implementation: Implementation;
  requires: { apis: ToolApi[]; domains: string[]; paths: string[] };
  tests: TestCase[];
  limits: { duration?: string; memory?: string };
}

/** Size limits of an artifact; the same numbers as in its published schema. */
export const MAX_SIZES = {
  description: 2_048,
  schema: 32_768,
  source: 32_768,
  testValue: 32_768,
  mapping: 16_384,
  fixture: 16_384,
  condition: 512,
  steps: 20,
  tests: 50,
  fixtures: 20,
  domains: 20,
  /** Characters of the whole artifact as canonical JSON. */
  artifact: 131_072,
} as const;

export const TOOL_NAME = /^[a-z][a-z0-9_-]{0,62}$/;
export const STEP_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,62}$/;
export const TOOL_REFERENCE = /^[a-z][a-z0-9_-]{0,62}(?:@sha256:[0-9a-f]{64})?$/;

/** Names that no tool may have. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  FORGE_TOOL_NAME,
  DROP_TOOL_NAME,
  'invoke',
  'execute',
  'run',
  'fetch',
  'fs_read_file',
  'constructor',
  'prototype',
  'input',
  'prev',
  'steps',
]);

/** Splits `name@sha256:…`; the digest is absent for a tool that is not forged. */
export function splitReference(reference: string): { name: string; digest?: string } {
  const at = reference.indexOf('@');
  return at === -1 ? { name: reference } : { name: reference.slice(0, at), digest: reference.slice(at + 1) };
}
