import { NO_HOOK_TOOLS } from '../v1alpha1/agent/hooks.ts';
import type { KindName } from '../v1alpha1/kinds.ts';

export interface Column {
  name: string;
  type: 'string' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  /** Only with `-o wide`. */
  wide?: true;
}

/** A cross-field rule that the API server enforces. */
export interface CelRule {
  /** The schema node of the rule: member names below the root, `[]` for the items of a list. Empty: the whole object. */
  at: readonly string[];
  rule: string;
  message: string;
}

/** The CRD properties of a kind besides its schema. All kinds are namespaced. */
export interface Definition {
  kind: KindName;
  plural: string;
  shortName: string;
  columns: readonly Column[];
  rules: readonly CelRule[];
  /** Fields that a field selector can use. */
  selectable: readonly string[];
  /** The status of an object without a status. The API server adds it when it reads the object, without a write. */
  defaultStatus?: object;
}

const AGE: Column = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'The age of the object.',
};

const text = (name: string, jsonPath: string, description: string): Column => ({
  name,
  type: 'string',
  jsonPath,
  description,
});

const date = (name: string, jsonPath: string, description: string): Column => ({
  ...text(name, jsonPath, description),
  type: 'date',
});

const condition = (name: string, type: string, field: 'status' | 'reason', description: string): Column =>
  text(name, `.status.conditions[?(@.type=="${type}")].${field}`, description);

const wide = (column: Column): Column => ({ ...column, wide: true });

/**
 * The status until the first reconcile: `kubectl wait`, the printer columns and kstatus, which Flux and Argo CD use, then never see a new
 * object as finished. No generation is observed yet, and the time is the one that Gateway API uses.
 */
const pendingStatus = (type: 'Ready' | 'Available') => ({
  observedGeneration: 0,
  conditions: [
    {
      type,
      status: 'Unknown',
      reason: 'Pending',
      message: 'waiting for the operator',
      lastTransitionTime: '1970-01-01T00:00:00Z',
    },
  ],
});

const IMMUTABLE: CelRule = {
  at: [],
  rule: 'self.spec == oldSelf.spec',
  message: 'spec is immutable; create a new object',
};

const SHORT_NAME: CelRule = {
  at: [],
  rule: "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
  message: 'the name must have at most 63 characters and no dots',
};

const ONE_SUBJECT: CelRule = {
  at: ['spec', 'subject'],
  rule: '[has(self.promotion), has(self.trust), has(self.call)].filter(given, given).size() == 1',
  message: 'set exactly one of promotion, trust and call',
};

const BUILTIN = "['sandboxed', 'restricted', 'standard', 'elevated']";

const levelExists = (field: string): CelRule => ({
  at: ['spec'],
  rule: `!has(self.level) || !has(self.level.${field}) || self.level.${field} in ${BUILTIN} || (has(self.levels) && self.levels.exists(l, l.name == self.level.${field}))`,
  message: `level.${field} does not exist; use sandboxed, restricted, standard or elevated, or define it in spec.levels`,
});

const isElevated = (field: string): string =>
  `(self.level.${field} == 'elevated' || (has(self.levels) && self.levels.exists(l, l.name == self.level.${field} && l.base == 'elevated')))`;

const SCHEDULE_MODE = "(has(self.mode) ? self.mode : 'Reactive')";

const SCHEDULE_RULES: readonly CelRule[] = [
  {
    rule: `(${SCHEDULE_MODE} == 'Periodic') == has(self.cron)`,
    message: 'cron and mode Periodic need each other',
  },
  { rule: `${SCHEDULE_MODE} == 'Continuous' || !has(self.interval)`, message: 'interval needs mode Continuous' },
  {
    rule: `!has(self.persistent) || !self.persistent || ${SCHEDULE_MODE} == 'Continuous'`,
    message: 'persistent needs mode Continuous',
  },
  {
    rule: '!has(self.persistent) || !self.persistent || !has(self.interval)',
    message: 'a persistent schedule has no interval',
  },
  { rule: `${SCHEDULE_MODE} == 'Periodic' || !has(self.jitter)`, message: 'jitter needs mode Periodic' },
  {
    rule: `!(${SCHEDULE_MODE} in ['Continuous', 'Periodic']) || has(self.message)`,
    message: 'message is missing: write what the agent does in a run',
  },
  {
    rule: `(${SCHEDULE_MODE} == 'Proactive') == (has(self.triggers) && self.triggers.size() > 0)`,
    message: 'triggers and mode Proactive need each other',
  },
  {
    rule: `${SCHEDULE_MODE} != 'Proactive' || !has(self.message)`,
    message: 'message has no effect with mode Proactive; write the message of each trigger',
  },
  {
    rule: '!has(self.quietHours) || self.quietHours.from != self.quietHours.to',
    message: 'quietHours begin when they end',
  },
].map((rule) => ({ at: ['spec', 'schedule'], ...rule }));

const PERSISTENT_RETURNS: CelRule = {
  at: ['spec'],
  rule: '!has(self.returns) || !has(self.schedule) || !has(self.schedule.persistent) || !self.schedule.persistent',
  message: 'a persistent agent never ends, so it returns no value; remove returns, or set persistent to false',
};

const ONE_SOURCE: CelRule = {
  at: ['spec', 'schedule', 'triggers', '[]'],
  rule: 'has(self.subject) != has(self.webhook)',
  message: 'set either subject or webhook',
};

export const DEFINITIONS: readonly Definition[] = [
  {
    kind: 'Agent',
    plural: 'agents',
    shortName: 'ag',
    selectable: ['.spec.trustPolicyRef.name'],
    defaultStatus: pendingStatus('Ready'),
    columns: [
      condition('Ready', 'Ready', 'status', 'Whether the agent is accepted, and running or intentionally idle.'),
      condition('Reason', 'Ready', 'reason', 'The reason of the Ready condition.'),
      text('Trust', '.status.level', 'The current access level.'),
      text('Model', '.spec.model.primary', 'The primary model.'),
      text('Usage', '.status.summary', 'Usage of the quotas, or of the day. Updated every few minutes.'),
      AGE,
      wide(text('Pod', '.status.pod.name', 'The pod of the agent.')),
      wide(text('Node', '.status.pod.node', 'The node of the pod.')),
      wide(text('Runtime', '.status.runtime', 'The sandbox class of the pod.')),
      wide({ name: 'Queue', type: 'integer', jsonPath: '.status.queue', description: 'Number of waiting messages.' }),
      wide(text('Schedule', '.spec.schedule.cron', 'The times of the runs.')),
      wide(date('Last run', '.status.schedule.lastScheduleTime', 'The age of the last run of the schedule.')),
      wide(text('Next run', '.status.schedule.nextScheduleTime', 'When the next run is due.')),
    ],
    rules: [
      SHORT_NAME,
      {
        at: ['spec', 'model'],
        rule: '!has(self.fallbacks) || !(self.primary in self.fallbacks)',
        message: 'the primary model is always tried first; remove it from fallbacks',
      },
      {
        at: ['spec', 'forge'],
        rule: "!has(self.apis) || self.apis.size() == 0 || (has(self.modes) && 'Sandbox' in self.modes)",
        message: 'apis has no effect without mode Sandbox',
      },
      ...SCHEDULE_RULES,
      PERSISTENT_RETURNS,
      ONE_SOURCE,
      {
        at: ['spec'],
        rule: "!has(self.invocation) || self.invocation != 'Code' || !has(self.forge) || !has(self.forge.persistSource) || self.forge.persistSource",
        message: 'code that forges is stored with the session; remove persistSource, or set invocation to Tools',
      },
      {
        at: ['spec'],
        rule: "!has(self.disclosure) || !has(self.disclosure.mode) || self.disclosure.mode == 'Inline' || ((!has(self.invocation) || self.invocation != 'Code') && !has(self.model.agent))",
        message: 'code and agent programs explore the tools themselves; remove disclosure',
      },
      {
        at: ['spec', 'a2a'],
        rule: '!has(self.enabled) || !self.enabled || (has(self.callers) && self.callers.size() > 0)',
        message: 'callers is missing: list the ServiceAccounts that may call the agent',
      },
      {
        at: ['spec', 'hooks', '[]'],
        rule: `!(self.tool in [${NO_HOOK_TOOLS.map((name) => `'${name}'`).join(', ')}])`,
        message: 'a tool that changes the tools of the session or ends the message cannot be a hook',
      },
    ],
  },
  {
    kind: 'TrustPolicy',
    plural: 'trustpolicies',
    shortName: 'tp',
    selectable: [],
    defaultStatus: pendingStatus('Ready'),
    columns: [
      condition('Ready', 'Ready', 'status', 'Whether the policy is in force.'),
      condition('Reason', 'Ready', 'reason', 'The reason of the Ready condition.'),
      text('Initial', '.spec.level.initial', 'The access level of a new agent.'),
      text('Ceiling', '.spec.level.ceiling', 'The highest access level that an agent can have.'),
      text('Autonomy', '.spec.autonomy', 'How much agents may do without an approver.'),
      {
        name: 'Agents',
        type: 'integer',
        jsonPath: '.status.agents',
        description: 'Number of agents under the policy.',
      },
      text('Suspended', '.spec.suspend', 'Whether the kill switch is on.'),
      AGE,
    ],
    rules: [
      SHORT_NAME,
      levelExists('initial'),
      levelExists('ceiling'),
      {
        at: ['spec'],
        rule: `!has(self.level) || !has(self.level.initial) || !${isElevated('initial')}`,
        message: 'no agent starts at elevated; an approver can raise it with an Approval',
      },
      {
        at: ['spec'],
        rule: `!has(self.level) || !has(self.level.ceiling) || !has(self.strategy) || self.strategy.type == 'Disabled' || !${isElevated('ceiling')} || (has(self.strategy.requireHuman) && 'elevated' in self.strategy.requireHuman)`,
        message:
          'an automatic strategy reaches elevated only with an approver; add elevated to strategy.requireHuman, or set the ceiling to standard',
      },
      {
        at: ['spec', 'strategy', 'categories', '[]'],
        rule: "!has(self.initial) || self.initial != 'elevated'",
        message: 'no agent starts at elevated; an approver can raise it with an Approval',
      },
      {
        at: ['spec', 'levels', '[]'],
        rule: `!(self.name in ${BUILTIN})`,
        message: 'a custom level must not have the name of a built-in level',
      },
      {
        at: ['spec', 'strategy'],
        rule: "(self.type == 'Milestone') == has(self.milestone)",
        message: 'milestone is required with type Milestone and not allowed otherwise',
      },
      {
        at: ['spec', 'strategy'],
        rule: "(self.type == 'PerCategory') == has(self.categories)",
        message: 'categories is required with type PerCategory and not allowed otherwise',
      },
      {
        at: ['spec', 'strategy'],
        rule: "self.type == 'Weighted' || !has(self.weighted)",
        message: 'weighted is only allowed with type Weighted',
      },
    ],
  },
  {
    kind: 'EmergentTool',
    plural: 'emergenttools',
    shortName: 'et',
    selectable: ['.spec.digest', '.spec.tier'],
    columns: [
      text('Tool', '.spec.artifact.name', 'The name by which models call the tool.'),
      text('Tier', '.spec.tier', 'The scope of the tool.'),
      condition('Active', 'Active', 'status', 'Whether agents can call the tool.'),
      condition('Reason', 'Active', 'reason', 'The reason of the Active condition.'),
      text('Promotion', '.status.promotion', 'The state of the next promotion.'),
      text('Owner', '.metadata.ownerReferences[0].name', 'The agent of the tool; empty at tier Shared.'),
      AGE,
      wide(text('Digest', '.spec.digest', 'The digest that identifies the tool.')),
    ],
    rules: [
      IMMUTABLE,
      {
        at: ['spec', 'artifact', 'implementation'],
        rule: "self.mode == 'Sandbox' ? !has(self.steps) : has(self.steps) && !has(self.source)",
        message: 'mode Sandbox does not allow steps; mode Compose requires steps and does not allow source',
      },
      {
        at: ['spec'],
        rule: "has(self.withheldSource) == (self.artifact.implementation.mode == 'Sandbox' && !has(self.artifact.implementation.source))",
        message: 'mode Sandbox requires artifact.implementation.source, or withheldSource in its place',
      },
      {
        at: ['spec'],
        rule: "!has(self.withheldSource) || self.tier == 'Agent'",
        message:
          'a tool is shared with its source: an approver must read what he approves, so tier Shared does not allow withheldSource',
      },
      {
        at: ['spec', 'artifact', 'implementation'],
        rule: '!has(self.steps) || self.steps.all(a, self.steps.exists_one(b, b.name == a.name))',
        message: 'each step must have a unique name',
      },
      {
        at: ['spec', 'artifact', 'requires'],
        rule: "(self.domains.size() == 0 || 'fetch' in self.apis) && (self.paths.size() == 0 || 'fs.readFile' in self.apis)",
        message: 'domains requires fetch in apis; paths requires fs.readFile in apis',
      },
    ],
  },
  {
    kind: 'Capability',
    plural: 'capabilities',
    shortName: 'cap',
    selectable: [],
    defaultStatus: pendingStatus('Available'),
    columns: [
      condition('Available', 'Available', 'status', 'Whether agents can use the capability.'),
      condition('Reason', 'Available', 'reason', 'The reason of the Available condition.'),
      text('Display-Name', '.spec.displayName', 'The name for human readers.'),
      text('Type', '.spec.type', 'The type of the capability.'),
      text('Category', '.spec.category', 'The category in lists of capabilities.'),
      AGE,
    ],
    rules: [
      {
        at: ['spec'],
        rule: "(self.type == 'Tool') == has(self.tool)",
        message: 'tool is required with type Tool and not allowed otherwise',
      },
      {
        at: ['spec'],
        rule: "self.type == 'Skill' || !(has(self.content) || has(self.resources) || has(self.source))",
        message: 'content, resources and source are for type Skill only',
      },
      {
        at: ['spec', 'backend'],
        rule: '[has(self.mcp), has(self.a2a), has(self.http)].exists_one(given, given)',
        message: 'set exactly one of mcp, a2a and http',
      },
      {
        at: ['spec', 'backend', 'mcp'],
        rule: 'has(self.url) != has(self.server) && !(has(self.server) && has(self.connection))',
        message: 'set exactly one of url and server, and connection with url only',
      },
    ],
  },
  {
    kind: 'ApprovalRequest',
    plural: 'approvalrequests',
    shortName: 'apr',
    selectable: ['.spec.nonce'],
    columns: [
      text('Type', '.spec.type', 'The type of decision.'),
      text('Tool', '.spec.tool', 'The name of the tool.'),
      text('From', '.spec.from', 'The current tier or level.'),
      text('To', '.spec.to', 'The requested tier or level.'),
      text('Risk', '.spec.risk', 'The risk of approving the request.'),
      text('Decision', '.status.decision', 'The decision; empty while the request is pending.'),
      AGE,
      wide(text('Agent', '.spec.agent.name', 'The agent that needs the decision.')),
    ],
    rules: [
      IMMUTABLE,
      ONE_SUBJECT,
      {
        at: ['spec'],
        rule: "self.type == 'PromoteTool' ? has(self.subject.promotion) : self.type == 'RaiseTrust' ? has(self.subject.trust) : has(self.subject.call)",
        message: 'the subject does not match the type',
      },
      {
        at: ['spec'],
        rule: "!has(self.arguments) || self.type == 'ToolCall'",
        message: 'arguments is only allowed with type ToolCall',
      },
      {
        at: ['spec'],
        rule: "!has(self.review) || self.type == 'PromoteTool'",
        message: 'review is only allowed with type PromoteTool',
      },
    ],
  },
  {
    kind: 'Approval',
    plural: 'approvals',
    shortName: 'apv',
    selectable: ['.spec.nonce'],
    columns: [
      text('Decision', '.spec.decision', 'The decision.'),
      text('By', '.spec.approvedBy.username', 'The approver.'),
      text('Request', '.spec.request', 'The ApprovalRequest.'),
      condition('Effective', 'Effective', 'reason', 'The reason of the Effective condition.'),
      AGE,
    ],
    rules: [IMMUTABLE, ONE_SUBJECT],
  },
];
