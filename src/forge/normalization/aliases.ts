/** The documented members, each with the other names that models give it. */
export type MemberAliases = Readonly<Record<string, readonly string[]>>;

export const REQUEST_ALIASES: MemberAliases = {
  name: ['tool_name', 'toolName'],
  description: ['desc', 'summary', 'purpose'],
  inputSchema: [
    'input_schema',
    'inputs_schema',
    'parameters',
    'params',
    'schema',
    'args',
    'arguments',
    'input',
    'inputs',
  ],
  outputSchema: ['output_schema', 'outputs_schema', 'returns', 'return_schema', 'response_schema', 'output', 'outputs'],
  testCases: ['test_cases', 'tests', 'testcases', 'examples', 'cases', 'unit_tests', 'samples'],
  limits: ['limit', 'resources'],
};

export const IMPLEMENTATION_ALIASES: MemberAliases = {
  code: [
    'source',
    'source_code',
    'sourceCode',
    'body',
    'function',
    'fn',
    'implementation',
    'javascript',
    'js',
    'script',
    'typescript',
  ],
  steps: ['pipeline', 'chain', 'stages'],
  allowlist: ['allowList', 'allow_list', 'apis', 'allowedAPIs', 'allowedApis', 'allowed_apis', 'permissions'],
  domains: ['fetchDomainAllowlist', 'allowedDomains', 'allowed_domains', 'hosts', 'allowedHosts', 'allowed_hosts'],
  paths: ['allowedPaths', 'allowed_paths', 'files'],
};

/** Members that models write at the top level and that belong into `implementation`. */
export const FLAT_MEMBERS: readonly string[] = [
  'mode',
  'code',
  'source',
  'source_code',
  'sourceCode',
  'body',
  'fn',
  'javascript',
  'js',
  'script',
  'typescript',
  'steps',
  'pipeline',
  'chain',
  'allowlist',
  'allowList',
  'allow_list',
  'apis',
  'domains',
  'paths',
];

export const TEST_ALIASES: MemberAliases = {
  input: ['args', 'arguments', 'inputs', 'params', 'parameters', 'given'],
  expectedOutput: [
    'expected_output',
    'expectedoutput',
    'expected',
    'output',
    'outputs',
    'expectedResult',
    'expected_result',
    'result',
    'returns',
  ],
  fixtures: ['mocks', 'stubs'],
};

export const FIXTURE_ALIASES: MemberAliases = {
  tool: ['toolName', 'tool_name', 'name'],
  input: ['args', 'arguments', 'match'],
  output: ['result', 'response', 'returns', 'value'],
};

export const STEP_ALIASES: MemberAliases = {
  name: ['id'],
  tool: ['toolName', 'tool_name', 'uses'],
  inputMapping: ['input_mapping', 'input', 'inputs', 'args', 'arguments', 'params', 'parameters', 'with'],
  condition: ['if', 'when'],
};

export const MODES: Readonly<Record<string, string>> = {
  sandbox: 'sandbox',
  sandboxed: 'sandbox',
  code: 'sandbox',
  js: 'sandbox',
  javascript: 'sandbox',
  typescript: 'sandbox',
  script: 'sandbox',
  function: 'sandbox',
  compose: 'compose',
  composed: 'compose',
  composable: 'compose',
  composition: 'compose',
  chain: 'compose',
  pipeline: 'compose',
  sequence: 'compose',
  workflow: 'compose',
  steps: 'compose',
};
