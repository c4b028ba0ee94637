/** A changed sample object that the API server must reject with the message of one CEL rule. */
export interface InvalidObject {
  readonly kind: string;
  /** The file in manifests/samples. */
  readonly sample: string;
  readonly message: string;
  /** New values by path, e.g. `spec.model.primary`; undefined removes the field. */
  readonly change: Readonly<Record<string, unknown>>;
  /** Sends the object as an update of the stored sample instead of as a new object. */
  readonly update?: boolean;
}

const STRATEGY = {
  type: 'Milestone',
  milestone: { minTasks: 20, minQuality: 7, activeFor: '168h', cleanFor: '168h' },
};
const ELEVATED = {
  name: 'own',
  base: 'elevated',
  categories: [],
  constraints: {
    files: 'Project',
    network: 'None',
    git: 'LocalOnly',
    code: 'Isolated',
    terminal: 'None',
    requireApproval: [],
  },
};
const IMMUTABLE = { message: 'spec is immutable; create a new object', update: true };
const NAME_TOO_LONG = {
  message: 'the name must have at most 63 characters and no dots',
  change: { 'metadata.name': 'a.b' },
};
const NO_SUBJECT = { message: 'set exactly one of promotion, trust and call', change: { 'spec.subject': {} } };
const WITHHELD = { digest: `sha256:${'a'.repeat(64)}`, bytes: 1 };
const STEP = { name: 'read', tool: 'file_read', inputMapping: '{}' };

export const INVALID_OBJECTS: readonly InvalidObject[] = [
  { kind: 'Agent', sample: 'agent.yaml', ...NAME_TOO_LONG },
  { kind: 'Agent', sample: 'agent.yaml', message: NAME_TOO_LONG.message, change: { 'metadata.name': 'a'.repeat(64) } },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'the primary model is always tried first; remove it from fallbacks',
    change: { 'spec.model.fallbacks': ['openai/gpt-4o-mini'] },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'apis has no effect without mode Sandbox',
    change: { 'spec.forge': { enabled: true, modes: ['Compose'], apis: ['fetch'] } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'code that forges is stored with the session; remove persistSource, or set invocation to Tools',
    change: { 'spec.invocation': 'Code', 'spec.forge': { enabled: true, persistSource: false } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'code and agent programs explore the tools themselves; remove disclosure',
    change: { 'spec.invocation': 'Code', 'spec.disclosure': { mode: 'Explore' } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'callers is missing: list the ServiceAccounts that may call the agent',
    change: { 'spec.a2a': { enabled: true } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'cron and mode Periodic need each other',
    change: { 'spec.schedule': { mode: 'Periodic', message: 'Report.' } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'interval needs mode Continuous',
    change: { 'spec.schedule': { interval: '5m' } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'persistent needs mode Continuous',
    change: { 'spec.schedule': { persistent: true } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'a persistent schedule has no interval',
    change: { 'spec.schedule': { mode: 'Continuous', message: 'Look.', persistent: true, interval: '5m' } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'a persistent agent never ends, so it returns no value; remove returns, or set persistent to false',
    change: {
      'spec.schedule': { mode: 'Continuous', message: 'Look.', persistent: true },
      'spec.returns': '{"type": "object"}',
    },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'jitter needs mode Periodic',
    change: { 'spec.schedule': { mode: 'Continuous', message: 'Look.', jitter: '5m' } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'message is missing: write what the agent does in a run',
    change: { 'spec.schedule': { mode: 'Continuous' } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'triggers and mode Proactive need each other',
    change: { 'spec.schedule': { mode: 'Proactive' } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'message has no effect with mode Proactive; write the message of each trigger',
    change: {
      'spec.schedule': {
        mode: 'Proactive',
        message: 'Look.',
        triggers: [{ name: 'order', subject: 'orders.*', message: '{{event}}' }],
      },
    },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'set either subject or webhook',
    change: { 'spec.schedule': { mode: 'Proactive', triggers: [{ name: 'order', message: '{{event}}' }] } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'quietHours begin when they end',
    change: { 'spec.schedule': { quietHours: { from: '22:00', to: '22:00' } } },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'a tool that changes the tools of the session or ends the message cannot be a hook',
    change: { 'spec.hooks': [{ events: ['ToolCall'], tool: 'forge_tool' }] },
  },
  { kind: 'ApprovalRequest', sample: 'approvalrequest.yaml', ...NO_SUBJECT },
  {
    kind: 'ApprovalRequest',
    sample: 'approvalrequest.yaml',
    message: 'the subject does not match the type',
    change: { 'spec.type': 'RaiseTrust' },
  },
  {
    kind: 'ApprovalRequest',
    sample: 'approvalrequest.yaml',
    message: 'arguments is only allowed with type ToolCall',
    change: { 'spec.arguments': '{}' },
  },
  {
    kind: 'ApprovalRequest',
    sample: 'approvalrequest.yaml',
    message: 'review is only allowed with type PromoteTool',
    change: { 'spec.type': 'RaiseTrust', 'spec.review': { object: 'csv-rows-a', agents: ['analyst'] } },
  },
  { kind: 'ApprovalRequest', sample: 'approvalrequest.yaml', ...IMMUTABLE, change: { 'spec.risk': 'low' } },
  { kind: 'Approval', sample: 'approval.yaml', ...NO_SUBJECT },
  { kind: 'Approval', sample: 'approval.yaml', ...IMMUTABLE, change: { 'spec.decision': 'Deny' } },
  {
    kind: 'Capability',
    sample: 'capability-tool.yaml',
    message: 'set exactly one of mcp, a2a and http',
    change: { 'spec.backend': {} },
  },
  ...[
    { 'spec.backend.mcp.server': 'docs' },
    { 'spec.backend.mcp.url': undefined },
    { 'spec.backend.mcp.url': undefined, 'spec.backend.mcp.server': 'docs' },
  ].map((change) => ({
    kind: 'Capability',
    sample: 'capability-mcp.yaml',
    message: 'set exactly one of url and server, and connection with url only',
    change,
  })),
  {
    kind: 'Capability',
    sample: 'capability-tool.yaml',
    message: 'tool is required with type Tool and not allowed otherwise',
    change: { 'spec.tool': undefined },
  },
  {
    kind: 'Capability',
    sample: 'capability-tool.yaml',
    message: 'content, resources and source are for type Skill only',
    change: { 'spec.content': 'How to use it.' },
  },
  {
    kind: 'EmergentTool',
    sample: 'emergenttool.yaml',
    message: 'mode Sandbox does not allow steps; mode Compose requires steps and does not allow source',
    change: { 'spec.artifact.implementation.mode': 'Compose' },
  },
  ...[
    { 'spec.artifact.implementation.source': undefined },
    { 'spec.withheldSource': WITHHELD },
    { 'spec.artifact.implementation.mode': 'Compose', 'spec.withheldSource': WITHHELD },
  ].map((change) => ({
    kind: 'EmergentTool',
    sample: 'emergenttool.yaml',
    message: 'mode Sandbox requires artifact.implementation.source, or withheldSource in its place',
    change,
  })),
  {
    kind: 'EmergentTool',
    sample: 'emergenttool.yaml',
    message:
      'a tool is shared with its source: an approver must read what he approves, so tier Shared does not allow withheldSource',
    change: {
      'spec.artifact.implementation.source': undefined,
      'spec.withheldSource': WITHHELD,
      'spec.tier': 'Shared',
    },
  },
  {
    kind: 'EmergentTool',
    sample: 'emergenttool-compose.yaml',
    message: 'each step must have a unique name',
    change: { 'spec.artifact.implementation.steps': [STEP, STEP] },
  },
  {
    kind: 'EmergentTool',
    sample: 'emergenttool.yaml',
    message: 'domains requires fetch in apis; paths requires fs.readFile in apis',
    change: { 'spec.artifact.requires.domains': ['example.com'] },
  },
  { kind: 'EmergentTool', sample: 'emergenttool.yaml', ...IMMUTABLE, change: { 'spec.tier': 'Shared' } },
  { kind: 'TrustPolicy', sample: 'trustpolicy.yaml', ...NAME_TOO_LONG },
  {
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: 'a custom level must not have the name of a built-in level',
    change: { 'spec.levels': [{ ...ELEVATED, name: 'standard' }] },
  },
  {
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: 'milestone is required with type Milestone and not allowed otherwise',
    change: { 'spec.strategy': { type: 'Milestone' } },
  },
  {
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: 'categories is required with type PerCategory and not allowed otherwise',
    change: { 'spec.strategy': { type: 'PerCategory' } },
  },
  {
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: 'weighted is only allowed with type Weighted',
    change: { 'spec.strategy': { type: 'Disabled', weighted: {} } },
  },
  {
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: 'no agent starts at elevated; an approver can raise it with an Approval',
    change: { 'spec.strategy': { type: 'PerCategory', categories: [{ category: 'web', initial: 'elevated' }] } },
  },
  ...['initial', 'ceiling'].map((end) => ({
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: `level.${end} does not exist; use sandboxed, restricted, standard or elevated, or define it in spec.levels`,
    change: { [`spec.level.${end}`]: 'unheard-of' },
  })),
  ...['elevated', 'own'].flatMap((level) => [
    {
      kind: 'TrustPolicy',
      sample: 'trustpolicy.yaml',
      message: 'no agent starts at elevated; an approver can raise it with an Approval',
      change: { 'spec.level.initial': level, 'spec.levels': [ELEVATED] },
    },
    {
      kind: 'TrustPolicy',
      sample: 'trustpolicy.yaml',
      message:
        'an automatic strategy reaches elevated only with an approver; add elevated to strategy.requireHuman, or set the ceiling to standard',
      change: { 'spec.level.ceiling': level, 'spec.levels': [ELEVATED], 'spec.strategy': STRATEGY },
    },
  ]),
];
