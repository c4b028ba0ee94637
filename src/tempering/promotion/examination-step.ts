import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { Audit } from '../../audit/port.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { registeredTools } from '../examination/redundancy/registered-tools.ts';
import { storeReport } from '../examination/report-store.ts';
import type { ExaminationReport, Examiner } from '../examination/types.ts';
import { examinationFigures, examinationVerdict, type ExaminationVerdict } from '../examination/verdict.ts';
import type { Registry } from '../registry/registry.ts';
import type { RecordedInput, RegisteredTool } from '../types.ts';
import type { PromotionRules } from './promotion-rules.ts';
import type { PromotionSubject } from './promotion-state-store.ts';

interface ExaminationDeps {
  examiner: Examiner;
  registry: Pick<Registry, 'all' | 'recordedInputs'>;
  records: RecordStore;
  audit: Audit;
}

interface ExaminedTool {
  tool: RegisteredTool;
  subject: PromotionSubject;
  recorded: readonly RecordedInput[];
  rules: PromotionRules;
}

/** Examines a tool between its re-runs and the panel, and records what was found. */
export async function examineTool(
  { examiner, registry, records, audit }: ExaminationDeps,
  { tool, subject, recorded, rules }: ExaminedTool,
  op: CallOptions,
): Promise<{ report: ExaminationReport; verdict: ExaminationVerdict }> {
  const replaced = replacedVersion(registry, tool);
  const { artifact, digest, authorModel } = tool;
  const inputs = recorded.map(({ input }) => input);
  const about = {
    artifact,
    digest,
    authorModel,
    recorded: inputs,
    ...(replaced === undefined ? {} : { replaced }),
    inService: async () => registeredTools(registry, tool, subject),
  };
  const report = await examiner.examine(about, op);
  const verdict = examinationVerdict(report, rules.examination);
  const existing = registry.all().map((other) => other.digest);
  await storeReport(records, subject.namespace, report, existing);
  const facts = {
    tool: subject.tool,
    tier: subject.to,
    outcome: verdict.outcome,
    report: digestOf(report as unknown as JsonObject),
    ...examinationFigures(report),
  };
  await audit.append({ action: 'tool.examined', actor: 'system', evidence: 'observed', subject: digest, facts });
  return { report, verdict };
}

/** The latest other version of the tool by its name that the same agent forged. */
function replacedVersion(registry: Pick<Registry, 'all'>, tool: RegisteredTool): ToolArtifact | undefined {
  const { owner, artifact, digest } = tool;
  const versions = registry
    .all()
    .filter((other) => other.artifact.name === artifact.name && other.digest !== digest)
    .filter((other) => other.owner.agent === owner.agent && other.owner.namespace === owner.namespace);
  return versions.toSorted((first, second) => (first.acceptedAt < second.acceptedAt ? 1 : -1))[0]?.artifact;
}
