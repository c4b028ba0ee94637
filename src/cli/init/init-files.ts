import { editorSchema, schemaFile, schemaText } from '../../api/generate/editor-schema.ts';
import { API_VERSION } from '../../api/names.ts';
import { KIND_SCHEMAS } from '../../api/v1alpha1/kinds.ts';

/** Kinds that users write by hand, and so need a schema for their editor. */
const EDITED_KINDS: readonly string[] = ['Agent', 'TrustPolicy'];

/** The files of a new project: paths relative to its folder, and texts. */
export function initialFiles(): ReadonlyMap<string, string> {
  const schemas = KIND_SCHEMAS.filter(({ kind }) => EDITED_KINDS.includes(kind));
  return new Map([
    ['manifests/agent.yaml', AGENT],
    ['manifests/policy.yaml', POLICY],
    ['kustomization.yaml', KUSTOMIZATION],
    ['tools/word_count.yaml', TOOL],
    ['tests/replay.yaml', REPLAY],
    ['.github/workflows/temper.yaml', WORKFLOW],
    ...schemas.map((schema): [string, string] => [
      `schemas/${schemaFile(schema.kind)}`,
      schemaText(editorSchema(schema)),
    ]),
  ]);
}

const schemaComment = (kind: string): string => `# yaml-language-server: $schema=../schemas/${schemaFile(kind)}`;

const AGENT = `${schemaComment('Agent')}
apiVersion: ${API_VERSION}
kind: Agent
metadata:
  name: assistant
spec:
  description: Answers questions about the files of this project.
  trustPolicyRef: {name: project}
  model:
    # default/default is the model that is configured: a provider key, --providers FILE or --model-script FILE.
    primary: default/default
  prompt:
    system: |
      You answer questions about the files in your workspace. Look at the files before you answer, and say which ones you read.
      When you need a calculation, forge a tool for it and test it on a small case first.
  grants:
    tools: [file_read, file_list, forge_tool, word_count]
  forge:
    enabled: true
    modes: [Compose, Sandbox]
`;

const POLICY = `${schemaComment('TrustPolicy')}
apiVersion: ${API_VERSION}
kind: TrustPolicy
metadata:
  name: project
spec:
  description: Files of the workspace and pure tools. No network.
  level: {initial: restricted, ceiling: restricted}
  models:
    # Every forged tool needs a judge; without one it is refused.
    judge: default/judge
  forge:
    apis: []
    domains: []
    limits: {minTestCases: 2}
  quotas:
    tokensPerHour: 200000
`;

/** Names the manifests among the YAML and JSON files of the project, for `-f .` and for `kubectl apply -k .`. */
const KUSTOMIZATION = `# The manifests of this project. The other YAML and JSON files are no manifests, so temper validate -f . skips them.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - manifests/agent.yaml
  - manifests/policy.yaml
`;

const TOOL = `# A tool in package form. temper tool check runs every deterministic gate on it, and temper tool import gives it to the agent, whose next
# session asks the judge.
schemaVersion: agentos.emergent-tool.v1
packageType: emergent-tool
tool:
  name: word_count
  description: Counts the words of a text. Words are separated by white space.
  inputSchema:
    type: object
    properties:
      text: {type: string, maxLength: 100000}
    required: [text]
    additionalProperties: false
  outputSchema:
    type: object
    properties:
      words: {type: integer, minimum: 0}
    required: [words]
    additionalProperties: false
  implementation:
    mode: sandbox
    allowlist: []
    code: |
      function execute(input) {
        const words = input.text.split(' ').join('\\n').split('\\t').join('\\n').split('\\n');
        return { words: words.filter((word) => word.trim() !== '').length };
      }
  testCases:
    - {input: {text: ""}, expectedOutput: {words: 0}}
    - {input: {text: "one  two\\nthree"}, expectedOutput: {words: 3}}
`;

const REPLAY = `# Answers in place of a model, so that the agent can be tried and tested without a key.
rules:
  # The judge reviews an imported tool before the first session that has it. Its answer must contain the nonce of the question.
  - name: judge
    when: {system: "You review one tool that another model wrote. Every deterministic check"}
    answer:
      text: >-
        {"nonce": "{{user | after "-----BEGIN " | before "-----"}}", "lines": [4],
        "safety": {"passed": true, "concerns": []}, "correctness": {"passed": true, "failedTests": []},
        "determinism": {"likely": true, "reasoning": "no clock, no randomness"}, "bounded": {"likely": true, "reasoning": "one pass over the input"},
        "confidence": 0.93, "approved": true, "reasoning": "does what its tests show"}
  - name: look at the project
    when: {lastUser: "files", turn: 1}
    answer:
      text: I will look at the folder.
      toolCalls:
        - {id: look, name: file_list, arguments: {path: "."}}
  - name: answer
    when: {lastUser: "files", turn: 2}
    answer:
      text: "The project starts with {{toolCall.look.entries.0.path}}."
  - name: count the words
    when: {lastUser: "words", turn: 1}
    answer:
      toolCalls:
        - {id: count, name: word_count, arguments: {text: "to be or not to be"}}
  - name: answer with the count
    when: {lastUser: "words", turn: 2}
    answer:
      text: "The text has {{toolCall.count.words}} words."
`;

const WORKFLOW = `# Checks manifests and tools. Set the repository variable TEMPER_REPOSITORY to the owner/name of Temper's repository.
name: temper
on: [push, pull_request]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/checkout@v4
        with:
          repository: \${{ vars.TEMPER_REPOSITORY }}
          path: .temper-program
      - run: make -C .temper-program setup
      - run: .temper-program/bin/temper validate -f .
      - run: .temper-program/bin/temper tool check tools/*.yaml
      - run: .temper-program/bin/temper tool import tools/word_count.yaml --agent assistant --state "$RUNNER_TEMP/state"
      - run: .temper-program/bin/temper run -f manifests --model-script tests/replay.yaml --state "$RUNNER_TEMP/state" -m "Which files are here?"
      - run: .temper-program/bin/temper run -f manifests --model-script tests/replay.yaml --state "$RUNNER_TEMP/state" -m "How many words has this text?"
`;
