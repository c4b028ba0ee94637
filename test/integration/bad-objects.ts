/** An object of a sample with something changed, for which the API server must give the message of a CEL rule. */
export interface BadObject {
  readonly kind: string;
  /** The file in manifests/samples. */
  readonly sample: string;
  readonly message: string;
  /** Members by their path, e.g. `spec.model.primary`; undefined takes it away. */
  readonly change: Readonly<Record<string, unknown>>;
  /** Sent in place of the sample, which is there already. */
  readonly update?: boolean;
}

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
const IMMUTABLE = { message: 'spec never changes; make a new object', update: true };
const SHORT_NAME = { message: 'the name has at most 63 characters and no dots', change: { 'metadata.name': 'a.b' } };
const ONE_SUBJECT = { message: 'give exactly one of promotion, trust and call', change: { 'spec.subject': {} } };
const STEP = { name: 'read', tool: 'file_read', inputMapping: '{}' };

export const BAD_OBJECTS: readonly BadObject[] = [
  { kind: 'Agent', sample: 'agent.yaml', ...SHORT_NAME },
  { kind: 'Agent', sample: 'agent.yaml', message: SHORT_NAME.message, change: { 'metadata.name': 'a'.repeat(64) } },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'the primary model is already tried first; take it out of fallbacks',
    change: { 'spec.model.fallbacks': ['openai/gpt-4o-mini'] },
  },
  {
    kind: 'Agent',
    sample: 'agent.yaml',
    message: 'apis have no effect without mode Sandbox',
    change: { 'spec.forge': { enabled: true, modes: ['Compose'], apis: ['fetch'] } },
  },
  { kind: 'ApprovalRequest', sample: 'approvalrequest.yaml', ...ONE_SUBJECT },
  {
    kind: 'ApprovalRequest',
    sample: 'approvalrequest.yaml',
    message: 'the subject does not fit the type',
    change: { 'spec.type': 'RaiseTrust' },
  },
  {
    kind: 'ApprovalRequest',
    sample: 'approvalrequest.yaml',
    message: 'arguments belong to type ToolCall',
    change: { 'spec.arguments': '{}' },
  },
  { kind: 'ApprovalRequest', sample: 'approvalrequest.yaml', ...IMMUTABLE, change: { 'spec.risk': 'low' } },
  { kind: 'Approval', sample: 'approval.yaml', ...ONE_SUBJECT },
  { kind: 'Approval', sample: 'approval.yaml', ...IMMUTABLE, change: { 'spec.decision': 'Deny' } },
  {
    kind: 'Capability',
    sample: 'capability-tool.yaml',
    message: 'give exactly one of mcp and http',
    change: { 'spec.backend': {} },
  },
  {
    kind: 'Capability',
    sample: 'capability-tool.yaml',
    message: 'tool belongs to type Tool, and type Tool needs it',
    change: { 'spec.tool': undefined },
  },
  {
    kind: 'EmergentTool',
    sample: 'emergenttool.yaml',
    message: 'mode Sandbox has source and no steps; mode Compose has steps and no source',
    change: { 'spec.artifact.implementation.mode': 'Compose' },
  },
  {
    kind: 'EmergentTool',
    sample: 'emergenttool-compose.yaml',
    message: 'each step has a name of its own',
    change: { 'spec.artifact.implementation.steps': [STEP, STEP] },
  },
  {
    kind: 'EmergentTool',
    sample: 'emergenttool.yaml',
    message: 'domains belong to fetch and paths to fs.readFile; name them in apis',
    change: { 'spec.artifact.requires.domains': ['example.com'] },
  },
  { kind: 'EmergentTool', sample: 'emergenttool.yaml', ...IMMUTABLE, change: { 'spec.tier': 'Shared' } },
  { kind: 'TrustPolicy', sample: 'trustpolicy.yaml', ...SHORT_NAME },
  {
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: 'the name of a built-in level is taken',
    change: { 'spec.levels': [{ ...ELEVATED, name: 'standard' }] },
  },
  {
    kind: 'TrustPolicy',
    sample: 'trustpolicy.yaml',
    message: 'milestone belongs to type Milestone, and type Milestone needs it',
    change: { 'spec.strategy': { type: 'Milestone' } },
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
      message: 'no agent starts at elevated; a person raises it by an Approval',
      change: { 'spec.level.initial': level, 'spec.levels': [ELEVATED] },
    },
    {
      kind: 'TrustPolicy',
      sample: 'trustpolicy.yaml',
      message: 'an automatic strategy may not reach elevated; set the ceiling to standard or strategy.type to Disabled',
      change: { 'spec.level.ceiling': level, 'spec.levels': [ELEVATED] },
    },
  ]),
];
