/** The manifests of agent `analyst`, which may call these tools and forges, and of its policy. `policyRest` is added to the spec of the policy. */
export function doublingAgent(tools: readonly string[], policyRest = ''): string {
  return `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: analyst}
spec:
  trustPolicyRef: {name: strict}
  model: {primary: default/default}
  prompt: {system: You count and read files.}
  grants: {tools: ${JSON.stringify(tools)}}
  forge: {enabled: true, modes: [Sandbox]}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: strict}
spec:
  level: {initial: restricted, ceiling: restricted}
  models: {judge: default/judge, reviewers: [default/safety, default/correctness]}
${policyRest}`;
}

/** The arguments of forge_tool, as YAML. */
export const DOUBLER = JSON.stringify({
  name: 'doubler',
  description: 'Doubles a number.',
  inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  code: 'function execute(input) { return { n: 2 * input.n }; }',
  testCases: [{ input: { n: 2 }, expectedOutput: { n: 4 } }],
});

/** A replay script: a judge that approves, an agent that forges at `forge` and calls the tool at `double`, and the rules of a test. */
export function doublingScript(rest = ''): string {
  return `
rules:
  - when: {system: "You review one tool that another model wrote. Every deterministic check"}
    answer:
      text: '{"nonce": "{{user | after "-----BEGIN " | before "-----"}}", "lines": [4], "safety": {"passed": true, "concerns": []}, "correctness": {"passed": true, "failedTests": []}, "determinism": {"likely": true, "reasoning": ""}, "bounded": {"likely": true, "reasoning": ""}, "confidence": 0.9, "approved": true, "reasoning": "fine"}'
  - when: {lastUser: "forge", turn: 1}
    answer: {toolCalls: [{name: forge_tool, arguments: ${DOUBLER}}]}
  - when: {lastUser: "double", turn: 1}
    answer: {toolCalls: [{id: doubled, name: doubler, arguments: {n: 21}}]}
  - when: {lastUser: "double", lastTool: {isError: true}}
    answer: {text: "Refused: {{lastTool.error.code}}"}
  - when: {lastUser: "double", turn: 2}
    answer: {text: "It is {{toolCall.doubled.n}}."}
${rest}  - answer: {text: "Done."}
`;
}
