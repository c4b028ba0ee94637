/** The module below `src` that acts on each spec field, and the fields that only human readers use. */

const ARTIFACT = 'spec.artifact';
const TO_AGENT = 'spec.promotion.toAgent';
const LEVEL = 'spec.levels[]';
const MILESTONE = 'spec.strategy.milestone';
const CATEGORY = 'spec.strategy.categories[]';

export const FIELD_READERS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  Agent: {
    'pod/agent/serve.ts': ['spec.limits.concurrency'],
    'operator/agent/observe.ts': ['spec.trustPolicyRef.name', 'spec.sandbox.class'],
    'engine/agent-model.ts': ['spec.model.primary', 'spec.model.fallbacks'],
    'agent/routing/route-message.ts': [
      'spec.model.routing.simple',
      'spec.model.routing.medium',
      'spec.model.routing.complex',
    ],
    'agent/loop/conversation.ts': ['spec.model.temperature', 'spec.prompt.system'],
    'agent/loop/limits.ts': [
      'spec.model.maxOutputTokens',
      'spec.limits.turns',
      'spec.limits.steps',
      'spec.limits.outputCharacters',
    ],
    'policy/prepare.ts': [
      'spec.grants.tools',
      'spec.grants.network',
      'spec.grants.memory.read',
      'spec.grants.memory.write',
      'spec.grants.messages',
      'spec.denyTools',
      'spec.arguments[].tool',
      'spec.arguments[].argument',
      'spec.arguments[].allow',
      'spec.autonomy',
      'spec.toolProfile',
    ],
    'policy/rules/common.ts': ['spec.mode'],
    'policy/forge-limits.ts': ['spec.forge.enabled', 'spec.forge.modes', 'spec.forge.apis', 'spec.suspend'],
    'tempering/lifecycle/promotion-and-demotion.ts': ['spec.forge.persistSource'],
    'gateway/storage/withheld-sessions.ts': ['spec.forge.persistSource'],
    'engine/engine.ts': ['spec.limits.toolTimeout'],
    'agent/quotas.ts': [
      'spec.quotas.tokensPerHour',
      'spec.quotas.tokensPerDay',
      'spec.quotas.costPerHour',
      'spec.quotas.costPerDay',
      'spec.quotas.costPerMonth',
      'spec.quotas.toolCallsPerMinute',
    ],
    'operator/pods/pod-template.ts': [
      'spec.sandbox.resources.cpu',
      'spec.sandbox.resources.memory',
      'spec.sandbox.workspace.size',
      'spec.sandbox.workspace.files[].path',
      'spec.sandbox.workspace.files[].configMap.name',
    ],
    'engine/engine-hooks.ts': ['spec.returns'],
    'agent/hooks/agent-hooks.ts': ['events', 'tool', 'timeout', 'onFailure'].map((name) => `spec.hooks[].${name}`),
    'operator/agent/plan.ts': ['spec.idle.scaleToZeroAfter'],
  },
  TrustPolicy: {
    'policy/untrusted-source.ts': ['spec.tainted.sources'],
    'policy/trust/ladder.ts': ['spec.level.initial', `${CATEGORY}.category`, `${CATEGORY}.initial`],
    'policy/trust/trust-state.ts': ['spec.strategy.type'],
    'policy/trust/evaluate.ts': ['spec.strategy.requireHuman'],
    'policy/trust/score.ts': ['quality', 'completion', 'reliability', 'experience'].map(
      (name) => `spec.strategy.weighted.weights.${name}`,
    ),
    'policy/trust/requirements.ts': [
      'spec.strategy.minTasks',
      'spec.strategy.minRatings',
      ...['restricted', 'standard', 'elevated'].map((name) => `spec.strategy.weighted.thresholds.${name}`),
      ...[MILESTONE, `${MILESTONE}.levels[]`].flatMap((owner) =>
        ['minTasks', 'minQuality', 'activeFor', 'cleanFor'].map((name) => `${owner}.${name}`),
      ),
      `${MILESTONE}.levels[].level`,
      `${CATEGORY}.minTasks`,
      `${CATEGORY}.minQuality`,
      'spec.decay.coolDown',
    ],
    'policy/trust/decay.ts': ['spec.decay.idle', 'spec.decay.reverifyEvery', 'spec.decay.minQuality'],
    'policy/levels.ts': [
      'spec.level.ceiling',
      `${LEVEL}.name`,
      `${LEVEL}.base`,
      `${LEVEL}.categories`,
      ...[LEVEL, 'spec'].flatMap((owner) =>
        ['files', 'network', 'git', 'code', 'terminal', 'requireApproval'].map(
          (name) => `${owner}.constraints.${name}`,
        ),
      ),
    ],
    'policy/prepare.ts': [
      'spec.autonomy',
      'spec.rules.deny',
      'spec.rules.requireApproval',
      'spec.rules.allow',
      'spec.tools.allow',
      'spec.tools.deny',
      'spec.models.allow',
      'spec.forge.domains',
      'spec.egress.allow',
      'spec.tainted.deny',
      'spec.tainted.network',
    ],
    'engine/agent-model.ts': [
      'spec.models.judge',
      'spec.models.judgeMayBeAuthor',
      'spec.models.reviewers',
      'spec.models.testers',
    ],
    'policy/forge-limits.ts': [
      'spec.forge.apis',
      'spec.forge.limits.duration',
      'spec.forge.limits.memory',
      'spec.forge.limits.minTestCases',
    ],
    'tempering/registry/visibility.ts': ['spec.forge.limits.sessionTools', 'spec.forge.limits.agentTools'],
    'tempering/promotion/promotion-rules.ts': [
      `${TO_AGENT}.minSuccessfulUses`,
      `${TO_AGENT}.minSuccessPercent`,
      `${TO_AGENT}.minDistinctInputs`,
      `${TO_AGENT}.minJudgeConfidencePercent`,
      `${TO_AGENT}.confidenceBound`,
      `${TO_AGENT}.coolDown`,
      `${TO_AGENT}.requireHuman`,
      `${TO_AGENT}.reportedEvidence`,
      `${TO_AGENT}.examination.maxDisagreements`,
      `${TO_AGENT}.examination.maxFailedInputsPercent`,
      'spec.promotion.toShared.minAgents',
      'spec.decay.maxErrorPercent',
      'spec.forge.limits.whenFull',
    ],
    'tempering/hygiene/tool-hygiene.ts': ['spec.decay.maxHarmPercent'],
    'gateway/pull-requests/follow.ts': ['spec.promotion.toShared.gitOps.connection'],
    'review/pull-requests/draft.ts': ['spec.promotion.toShared.gitOps.branch', 'spec.promotion.toShared.gitOps.path'],
    'operator/agent/admission.ts': ['spec.quotas.agents', 'spec.suspend'],
    'agent/quotas.ts': [
      'spec.quotas.tokensPerHour',
      'spec.quotas.tokensPerDay',
      'spec.quotas.costPerHour',
      'spec.quotas.costPerDay',
      'spec.quotas.costPerMonth',
    ],
    'operator/namespace/objects.ts': ['spec.quotas.cpu', 'spec.quotas.memory'],
    'policy/approval-rules.ts': [
      'spec.approvals.timeout',
      'spec.approvals.onTimeout',
      'spec.approvals.byRisk[].risk',
      'spec.approvals.byRisk[].timeout',
      'spec.approvals.byRisk[].onTimeout',
      'spec.approvals.escalation[].after',
      'spec.approvals.escalation[].to',
    ],
  },
  EmergentTool: {
    'tempering/withheld/artifact-with-source.ts': ['spec.withheldSource.digest'],
    'forge/artifact-validation.ts': [
      `${ARTIFACT}.description`,
      `${ARTIFACT}.implementation.mode`,
      `${ARTIFACT}.implementation.steps[].condition`,
    ],
    'forge/parse-artifact.ts': [
      `${ARTIFACT}.inputSchema`,
      `${ARTIFACT}.outputSchema`,
      `${ARTIFACT}.implementation.steps[].inputMapping`,
      `${ARTIFACT}.tests[].input`,
      `${ARTIFACT}.tests[].expectedOutput`,
      `${ARTIFACT}.tests[].fixtures[].input`,
      `${ARTIFACT}.tests[].fixtures[].output`,
      `${ARTIFACT}.limits.duration`,
      `${ARTIFACT}.limits.memory`,
    ],
    'tempering/judge/normalize-artifact.ts': [
      `${ARTIFACT}.implementation.source`,
      `${ARTIFACT}.implementation.steps[].name`,
      `${ARTIFACT}.implementation.steps[].tool`,
      `${ARTIFACT}.tests[].fixtures[].tool`,
    ],
    'tools/host/host-calls.ts': [
      `${ARTIFACT}.requires.apis`,
      `${ARTIFACT}.requires.domains`,
      `${ARTIFACT}.requires.paths`,
    ],
    'gateway/discovery/catalog-entries.ts': [`${ARTIFACT}.name`, 'spec.digest', 'spec.tier', 'spec.contributors'],
    'operator/tool/stored-tool.ts': ['spec.requestNonce'],
  },
  Capability: {
    'discovery/entry.ts': [
      'spec.type',
      'spec.description',
      'spec.category',
      'spec.tags',
      'spec.requiredSecrets',
      'spec.requiredTools',
      'spec.tool.name',
      'spec.tool.category',
      'spec.tool.action',
    ],
  },
  Approval: {
    'gateway/cluster/demotions.ts': ['spec.decision', 'spec.subject.promotion.digest'],
  },
};

/** Fields that are stored for human readers. Nothing may depend on them. */
export const FOR_HUMAN_READERS: readonly string[] = [
  'Agent.spec.description',
  'TrustPolicy.spec.description',
  'EmergentTool.spec.withheldSource.bytes',
  'Approval.spec.request',
  'Approval.spec.reason',
];

/** Kinds that record a decision. `temper run` writes and reads them in its state folder; on a cluster see NOT_IN_FORCE. */
export const WRITTEN_BY_TEMPER: readonly string[] = ['ApprovalRequest', 'Approval'];
