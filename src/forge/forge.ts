import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { Digest } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { printable } from '../lib/printable.ts';
import { member, type Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Decider } from '../policy/types.ts';
import type { HostCalls, Sandbox } from '../sandbox/port.ts';
import type { NestedCall, ToolView } from '../tools/contract.ts';
import type { EventSink } from '../tools/events.ts';
import type { SchemaCompiler } from '../tools/json-schema/compiler.ts';
import { GateRecorder, hasViolations, shownName } from './gate-recorder.ts';
import { templateWarnings } from './compose/template-hints.ts';
import { buildArtifact } from './gates/build.ts';
import { checkResourceLimits, measure, usageNote } from './gates/resource-limits.ts';
import { checkOutputs, hasUndeclaredMember } from './gates/output-schema.ts';
import { normalizeRequest } from './normalization/normalize-request.ts';
import { checkShape } from './gates/shape.ts';
import { checkResults, checkTestInputs, countCases } from './gates/tests.ts';
import type { ParsedArtifact } from './parse-artifact.ts';
import { stripTypes } from './source-repair/strip-types.ts';
import { runStaticGates, vetArtifact } from './static-gates.ts';
import { testLeakWarnings } from './test-runs/test-leakage.ts';
import { runTests } from './test-runs/run-tests.ts';
import type { ToolCandidate, ForgeEvidence, RefusedTool } from './types.ts';

export interface ForgeDeps {
  sandbox: Sandbox;
  clock: Clock;
  schemas: SchemaCompiler;
  /** Number of concurrent test runs; 2 when absent. */
  concurrency?: number;
}

/** The current policy, tools and host functions of the agent that forges. */
export interface ForgeContext {
  decider: Decider;
  view: ToolView;
  /** The checked invoker, for steps whose tools have no side effects. */
  invoke: NestedCall;
  events: EventSink;
  /** Host functions a tool may use in its tests; permission is checked at each call. */
  hostCalls(artifact: ToolArtifact): HostCalls;
  /** Whether the registry lets a session replace its own tools. */
  replacesSessionTools?: boolean;
  /** Names that no forged tool may have, whatever the view has. */
  reservedNames?: ReadonlySet<string>;
  /** A user imports the tool for all sessions of the agent. */
  isImport?: boolean;
  /** The session that forges; no process of the sandbox runs tests of two. */
  owner?: string;
  op: CallOptions;
}

/** A request in any form that models write, or an existing artifact; `digest` is the one its author declares, if any. */
export type ForgeSource = { request: Json; digest?: Digest } | { artifact: Json; digest: Digest | undefined };

/** An artifact that passed every gate that runs no code. */
interface Inspected {
  open: ParsedArtifact;
  warnings: string[];
  log: GateRecorder;
}

/** The author's half of a forge: every gate that needs no judge. Registers nothing. */
export interface Forge {
  /** Runs all gates, tests included. */
  check(source: ForgeSource, context: ForgeContext): Promise<ToolCandidate | RefusedTool>;
  /** Runs the gates that execute no code of the tool. */
  inspect(source: ForgeSource, context: ForgeContext): Inspected | RefusedTool;
}

export function createForge(deps: ForgeDeps): Forge {
  return {
    inspect: (source, context) => inspectTool(source, context, deps.schemas),
    async check(source, context) {
      const inspected = inspectTool(source, context, deps.schemas);
      return 'accepted' in inspected ? inspected : testedCandidate(deps, inspected, context);
    },
  };
}

/** Runs the gates that execute no code of the tool; needs no sandbox. */
export function inspectTool(
  source: ForgeSource,
  context: ForgeContext,
  schemas: SchemaCompiler,
): Inspected | RefusedTool {
  const drafted = 'request' in source ? draft(source.request, context) : submitted(source.artifact, context);
  if ('accepted' in drafted) return drafted;
  const { artifact, log, warnings } = drafted;
  const vetting = vetArtifact(artifact, { schemaCompiler: schemas, stripTypes });
  const passed = runStaticGates({ artifact, digest: source.digest }, context, log, vetting);
  return 'accepted' in passed ? passed : { open: passed.open, warnings: [...warnings, ...passed.warnings], log };
}

interface ArtifactDraft {
  artifact: Json;
  warnings: string[];
  log: GateRecorder;
}

/** Normalises a request, checks its shape and builds the artifact. */
function draft(input: Json, context: ForgeContext): ArtifactDraft | RefusedTool {
  const repaired = normalizeRequest(input);
  const log = new GateRecorder(shownName(repaired.request), context.events);
  announce(repaired.request, log, context);
  if (hasViolations(repaired.violations)) return log.refuse('normalization', repaired.violations);
  if (repaired.sourceRepairs.length > 0) log.pass('normalization', repaired.sourceRepairs.join('; '));
  const shape = checkShape(repaired.request, context.decider.forgeLimits.minTestCases);
  if ('violations' in shape) return log.refuse('shape', shape.violations);
  const { request } = shape;
  if (context.reservedNames?.has(request.name) === true) {
    const message = `"${request.name}" is a name of Temper's own tools; choose another name`;
    return log.refuse('shape', [{ code: 'TEMPER_FORGE_NAME_TAKEN', message }]);
  }
  if (isTaken(request.name, context)) {
    const message = `a tool named "${request.name}" exists; choose another name`;
    return log.refuse('shape', [{ code: 'TEMPER_FORGE_NAME_TAKEN', message }]);
  }
  const artifact = buildArtifact(request, context.decider.forgeLimits, context.view);
  const warnings = [...repaired.warnings, ...shape.warnings, ...templateWarnings(artifact)];
  return { artifact: artifact as unknown as Json, log, warnings };
}

function isTaken(name: string, { view, replacesSessionTools = false, isImport = false }: ForgeContext): boolean {
  const holder = view.find(name)?.descriptor;
  const { tier, imported = false } = holder?.forged ?? {};
  return holder !== undefined && !(replacesSessionTools && tier === 'Session' && imported === isImport);
}

function submitted(artifact: Json, context: ForgeContext): ArtifactDraft {
  return { artifact, log: new GateRecorder(shownName(artifact), context.events), warnings: [] };
}

function announce(request: Json, log: GateRecorder, { events }: ForgeContext): void {
  const [mode, description] = [member(member(request, 'implementation'), 'mode'), member(request, 'description')];
  events({
    type: 'forge-start',
    tool: log.tool,
    mode: typeof mode === 'string' ? printable(mode, 20) : 'unknown',
    description: typeof description === 'string' ? printable(description, 200) : '',
  });
}

async function testedCandidate(
  deps: ForgeDeps,
  { open, warnings, log }: Inspected,
  context: ForgeContext,
): Promise<ToolCandidate | RefusedTool> {
  const inputs = checkTestInputs(open, deps.schemas);
  if (hasViolations(inputs)) return log.refuse('tests', inputs, { details: countCases(open, []) });
  const { view, invoke } = context;
  const host = context.hostCalls(open.artifact);
  const environment = { ...deps, concurrency: deps.concurrency ?? 2, view, invoke, host, owner: context.owner };
  const results = await runTests(open, environment, context.op);
  const evidence: ForgeEvidence = {
    tests: results,
    ...measure(results),
    warnings: [...warnings, ...testLeakWarnings(open)],
  };
  const details = { ...countCases(open, results) };
  const passed = `${details.passed}/${open.tests.length}`;
  const failed = checkResults(open, results);
  if (hasViolations(failed)) return log.refuse('tests', failed, { note: passed, evidence, details });
  log.pass('tests', `${passed} ×2`);
  const outputs = checkOutputs(open, results, deps.schemas);
  if (hasViolations(outputs)) {
    const extraField = results.some(({ got }) => got !== undefined && hasUndeclaredMember(open.outputSchema, got));
    return log.refuse('output-schema', outputs, { evidence, details, extraField });
  }
  log.pass('output-schema');
  const measured = checkResourceLimits(open, results);
  if (hasViolations(measured)) return log.refuse('resources', measured, { evidence, details });
  log.pass('resources', usageNote(results));
  return { artifact: open.artifact, digest: open.digest, evidence, gates: log.gates };
}
