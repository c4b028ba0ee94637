import type { KindName } from '../v1alpha1/kinds.ts';

export interface Column {
  name: string;
  type: 'string' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  /** Only with `-o wide`. */
  wide?: true;
}

/** A rule between fields, checked by the API server. */
export interface CelRule {
  /** Where it stands: member names below the root, `[]` for the items of a list. Empty: the whole object. */
  at: readonly string[];
  rule: string;
  message: string;
}

/** What a kind is to Kubernetes, beside its fields. All are namespaced. */
export interface Definition {
  kind: KindName;
  plural: string;
  shortName: string;
  columns: readonly Column[];
  rules: readonly CelRule[];
  /** Fields that a list can be narrowed by. */
  selectable: readonly string[];
}

const AGE: Column = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since it was made.',
};

const text = (name: string, jsonPath: string, description: string): Column => ({
  name,
  type: 'string',
  jsonPath,
  description,
});

const condition = (name: string, type: string, field: 'status' | 'reason', description: string): Column =>
  text(name, `.status.conditions[?(@.type=="${type}")].${field}`, description);

const wide = (column: Column): Column => ({ ...column, wide: true });

const IMMUTABLE: CelRule = {
  at: [],
  rule: 'self.spec == oldSelf.spec',
  message: 'spec never changes; make a new object',
};

const SHORT_NAME: CelRule = {
  at: [],
  rule: "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
  message: 'the name has at most 63 characters and no dots',
};

const ONE_SUBJECT: CelRule = {
  at: ['spec', 'subject'],
  rule: '[has(self.promotion), has(self.trust), has(self.call)].filter(given, given).size() == 1',
  message: 'give exactly one of promotion, trust and call',
};

const BUILTIN = "['sandboxed', 'restricted', 'standard', 'elevated']";

const levelExists = (field: string): CelRule => ({
  at: ['spec'],
  rule: `!has(self.level) || !has(self.level.${field}) || self.level.${field} in ${BUILTIN} || (has(self.levels) && self.levels.exists(l, l.name == self.level.${field}))`,
  message: `level.${field} does not exist; use sandboxed, restricted, standard or elevated, or define it in spec.levels`,
});

const isElevated = (field: string): string =>
  `(self.level.${field} == 'elevated' || (has(self.levels) && self.levels.exists(l, l.name == self.level.${field} && l.base == 'elevated')))`;

export const DEFINITIONS: readonly Definition[] = [
  {
    kind: 'Agent',
    plural: 'agents',
    shortName: 'ag',
    selectable: ['.spec.trustPolicyRef.name'],
    columns: [
      condition('Ready', 'Ready', 'status', 'Accepted, and running or idle on purpose.'),
      condition('Reason', 'Ready', 'reason', 'Why.'),
      text('Trust', '.status.level', 'The access level that counts now.'),
      text('Model', '.spec.model.primary', 'The primary model.'),
      text('Usage', '.status.summary', 'Use of quotas, written every few minutes.'),
      { name: 'Tools', type: 'integer', jsonPath: '.status.tools', description: 'Active tools at tier Agent.' },
      AGE,
      wide(text('Pod', '.status.pod.name', 'Its pod.')),
      wide(text('Node', '.status.pod.node', 'The node of its pod.')),
      wide(text('Runtime', '.status.runtime', 'The sandbox class of its pod.')),
      wide(text('Egress', '.status.egress', 'The egress profile of its pod.')),
      wide({ name: 'Queue', type: 'integer', jsonPath: '.status.queue', description: 'Messages that wait.' }),
    ],
    rules: [
      SHORT_NAME,
      {
        at: ['spec', 'model'],
        rule: '!has(self.fallbacks) || !(self.primary in self.fallbacks)',
        message: 'the primary model is already tried first; take it out of fallbacks',
      },
      {
        at: ['spec', 'forge'],
        rule: "!has(self.apis) || self.apis.size() == 0 || (has(self.modes) && 'Sandbox' in self.modes)",
        message: 'apis have no effect without mode Sandbox',
      },
    ],
  },
  {
    kind: 'TrustPolicy',
    plural: 'trustpolicies',
    shortName: 'tp',
    selectable: [],
    columns: [
      condition('Ready', 'Ready', 'status', 'In force.'),
      condition('Reason', 'Ready', 'reason', 'Why.'),
      text('Initial', '.spec.level.initial', 'The level of a new agent.'),
      text('Ceiling', '.spec.level.ceiling', 'The level no agent goes beyond.'),
      text('Autonomy', '.spec.autonomy', 'How much runs without a person.'),
      { name: 'Agents', type: 'integer', jsonPath: '.status.agents', description: 'Agents under it.' },
      text('Suspended', '.spec.suspend', 'The kill switch.'),
      AGE,
    ],
    rules: [
      SHORT_NAME,
      levelExists('initial'),
      levelExists('ceiling'),
      {
        at: ['spec'],
        rule: `!has(self.level) || !has(self.level.initial) || !${isElevated('initial')}`,
        message: 'no agent starts at elevated; a person raises it by an Approval',
      },
      {
        at: ['spec'],
        rule: `!has(self.level) || !has(self.level.ceiling) || !has(self.strategy) || self.strategy.type == 'Disabled' || !${isElevated('ceiling')}`,
        message:
          'an automatic strategy may not reach elevated; set the ceiling to standard or strategy.type to Disabled',
      },
      {
        at: ['spec', 'levels', '[]'],
        rule: `!(self.name in ${BUILTIN})`,
        message: 'the name of a built-in level is taken',
      },
      {
        at: ['spec', 'strategy'],
        rule: "(self.type == 'Milestone') == has(self.milestone)",
        message: 'milestone belongs to type Milestone, and type Milestone needs it',
      },
    ],
  },
  {
    kind: 'EmergentTool',
    plural: 'emergenttools',
    shortName: 'et',
    selectable: ['.spec.digest', '.spec.tier'],
    columns: [
      text('Tool', '.spec.artifact.name', 'The name models call it by.'),
      text('Tier', '.spec.tier', 'Who may use it.'),
      condition('Active', 'Active', 'status', 'Agents can call it.'),
      condition('Reason', 'Active', 'reason', 'Why.'),
      text('Promotion', '.status.promotion', 'How far the next promotion has come.'),
      text('Owner', '.metadata.ownerReferences[0].name', 'Its agent; none at tier Shared.'),
      AGE,
      wide(text('Digest', '.spec.digest', 'What identifies it.')),
    ],
    rules: [
      IMMUTABLE,
      {
        at: ['spec', 'artifact', 'implementation'],
        rule: "self.mode == 'Sandbox' ? has(self.source) && !has(self.steps) : has(self.steps) && !has(self.source)",
        message: 'mode Sandbox has source and no steps; mode Compose has steps and no source',
      },
      {
        at: ['spec', 'artifact', 'implementation'],
        rule: '!has(self.steps) || self.steps.all(a, self.steps.exists_one(b, b.name == a.name))',
        message: 'each step has a name of its own',
      },
      {
        at: ['spec', 'artifact', 'requires'],
        rule: "(self.domains.size() == 0 || 'fetch' in self.apis) && (self.paths.size() == 0 || 'fs.readFile' in self.apis)",
        message: 'domains belong to fetch and paths to fs.readFile; name them in apis',
      },
    ],
  },
  {
    kind: 'Capability',
    plural: 'capabilities',
    shortName: 'cap',
    selectable: [],
    columns: [
      text('Type', '.spec.type', 'What is offered.'),
      text('Category', '.spec.category', 'The group it is listed under.'),
      condition('Available', 'Available', 'status', 'Agents can use it.'),
      condition('Reason', 'Available', 'reason', 'Why.'),
      AGE,
    ],
    rules: [
      {
        at: ['spec'],
        rule: "(self.type == 'Tool') == has(self.tool)",
        message: 'tool belongs to type Tool, and type Tool needs it',
      },
      {
        at: ['spec', 'backend'],
        rule: 'has(self.mcp) != has(self.http)',
        message: 'give exactly one of mcp and http',
      },
    ],
  },
  {
    kind: 'ApprovalRequest',
    plural: 'approvalrequests',
    shortName: 'apr',
    selectable: ['.spec.nonce'],
    columns: [
      text('Type', '.spec.type', 'What waits for a person.'),
      text('Tool', '.spec.tool', 'The tool it is about.'),
      text('From', '.spec.from', 'The tier or level there is now.'),
      text('To', '.spec.to', 'The tier or level asked for.'),
      text('Risk', '.spec.risk', 'The risk of saying yes.'),
      text('Decision', '.status.decision', 'The answer.'),
      AGE,
      wide(text('Agent', '.spec.agent.name', 'On whose behalf it is asked.')),
    ],
    rules: [
      IMMUTABLE,
      ONE_SUBJECT,
      {
        at: ['spec'],
        rule: "self.type == 'PromoteTool' ? has(self.subject.promotion) : self.type == 'RaiseTrust' ? has(self.subject.trust) : has(self.subject.call)",
        message: 'the subject does not fit the type',
      },
      {
        at: ['spec'],
        rule: "!has(self.arguments) || self.type == 'ToolCall'",
        message: 'arguments belong to type ToolCall',
      },
    ],
  },
  {
    kind: 'Approval',
    plural: 'approvals',
    shortName: 'apv',
    selectable: ['.spec.nonce'],
    columns: [
      text('Decision', '.spec.decision', 'The answer.'),
      text('By', '.spec.approvedBy.username', 'Who decided.'),
      text('Request', '.spec.request', 'What is answered.'),
      condition('Effective', 'Effective', 'status', 'The answer counts.'),
      AGE,
    ],
    rules: [IMMUTABLE, ONE_SUBJECT],
  },
];
