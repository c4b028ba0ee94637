import type { NamedTest } from '../support/named-test.ts';

interface Excluded {
  readonly command: RegExp;
  readonly reason: string;
  /** The tests that run it with what this machine does not have. Empty: no test runs it. */
  readonly tests: readonly NamedTest[];
}

/** A command of Temper has the error that it ends with where only what the reason names is missing; one of another program has none. */
export type Exclusion = Excluded | (Excluded & { readonly fails: RegExp });

const QUICKSTART: NamedTest = {
  file: 'test/e2e/quickstart.test.ts',
  name: 'helm installs the chart, and the chart tests pass',
};
const ACCEPTED: NamedTest = {
  file: 'test/system/mcp-servers.test.ts',
  name: 'an agent has the tools that its user read and accepted, and loses one that changes until it is accepted again',
};

/** Documented commands that `documented-commands.test.ts` does not run, with the reason. */
export const EXCLUDED: readonly Exclusion[] = [
  {
    command: /^helm /,
    reason: 'needs a cluster; the tests on real pods install and test the chart with values of their own',
    tests: [QUICKSTART],
  },
  {
    command: /^kubectl (?!temper )/,
    reason: 'needs a cluster; the tests on real pods run those of the quick start and of the samples',
    tests: [
      QUICKSTART,
      { file: 'test/e2e/suites/samples/questions.ts', name: 'an agent in code mode answers with one program' },
    ],
  },
  {
    command: /^export (?:KUBECONFIG|PATH)=/,
    reason: 'starts a cluster on this machine, which needs root',
    tests: [],
  },
  { command: /^vllm serve /, reason: 'is a program of another project', tests: [] },
  { command: /^docker /, reason: 'needs a container engine and a registry', tests: [] },
  {
    command: /^curl /,
    reason: 'needs an agent that serves over A2A; the test asks one with a client of its own',
    tests: [
      {
        file: 'test/e2e/suites/samples/outside.ts',
        name: 'a program with a token of a caller reads the card of an agent over A2A, and asks it',
      },
    ],
  },
  {
    command: /^npm install --prefix \/opt\/qwen /,
    reason: 'needs a registry of packages; the test has the program that was installed from it',
    tests: [
      {
        file: 'test/integration/agent-programs/qwen-code.test.ts',
        name: 'it has the model and the granted tools, is refused the others, and is charged for what was served',
      },
    ],
  },
  {
    command: /^temper serve gateway --config gateway\.yaml$/,
    reason: 'needs a cluster and NATS',
    tests: [],
    fails: /--config gateway\.yaml does not exist/,
  },
  {
    command: /^temper tool export csv_rows --connection /,
    reason: 'needs a tool of a run and a server for Git',
    tests: [
      {
        file: 'test/integration/gitops/gitea.test.ts',
        name: 'temper tool export opens the pull request of a tool of the state folder',
      },
    ],
    fails: /TEMPER_STATE_NOT_FOUND/,
  },
  {
    command: /^temper tool push csv_rows oci:/,
    reason: 'needs a tool of a run and an OCI registry',
    tests: [
      {
        file: 'src/cli/tools/oci/oci-verbs.test.ts',
        name: 'a tool is pushed with its attestation and pulled by its key',
      },
    ],
    fails: /TEMPER_STATE_NOT_FOUND/,
  },
  {
    command: /^temper tool pull oci:/,
    reason: 'needs an OCI registry and the key of its exporter',
    tests: [
      {
        file: 'src/cli/tools/oci/oci-verbs.test.ts',
        name: 'a tool is pushed with its attestation and pulled by its key',
      },
    ],
    fails: /--trusted-key KEY\.pem does not exist/,
  },
  {
    command: /^temper tool import csv_rows\.json --agent analyst --attestation /,
    reason: 'needs a package that was pulled from a registry',
    tests: [
      {
        file: 'test/integration/oci/registry.test.ts',
        name: 'a pulled tool is verified against the key of its exporter, and imported',
      },
    ],
    fails: /the package csv_rows\.json does not exist/,
  },
  {
    command: /^temper skill push /,
    reason: 'needs an OCI registry',
    tests: [
      {
        file: 'src/cli/skills/skill-verbs.test.ts',
        name: 'the files that an agent gets are pushed, and pulled with their source',
      },
    ],
    fails: /ECONNREFUSED/,
  },
  {
    command: /^(?:bin\/)?temper skill pull /,
    reason: 'needs an OCI registry or a Git server',
    tests: [
      {
        file: 'test/integration/oci/skills.test.ts',
        name: 'a pull by tag and by digest writes the same files, and names a tag that moved',
      },
      {
        file: 'src/cli/skills/skill-verbs.test.ts',
        name: 'a folder at a branch, a tag and a commit is pulled with the commit as its source',
      },
    ],
    fails: /ECONNREFUSED/,
  },
  {
    command: /^bin\/temper run -f manifests\/local\//,
    reason: 'needs a model and services of its user; the samples of the page bring both',
    tests: [
      {
        file: 'test/system/local-samples.test.ts',
        name: 'the web researcher searches, reads the page of a result, and names it',
      },
      {
        file: 'test/system/local-samples.test.ts',
        name: 'the helper for repositories clones, corrects and commits',
      },
      {
        file: 'test/system/local-samples.test.ts',
        name: 'the analyst with SQL answers from the database of its sample',
      },
      {
        file: 'test/system/local-samples.test.ts',
        name: 'the user of an MCP server accepts its tool, and calls it by the Capability that the command line prints',
      },
    ],
    fails: /TEMPER_MODEL_UNAVAILABLE: no model is configured/,
  },
  {
    command: /^bin\/temper run -f manifests\/skills\/agent\.yaml .* --skills work-skills /,
    reason: 'needs a skill that was pulled from a Git server',
    tests: [
      {
        file: 'test/system/local-samples.test.ts',
        name: 'the user of skills follows a skill that was pulled from a repository',
      },
    ],
    fails: /--skills work-skills is not a folder/,
  },
  {
    command: /^temper discover .* --providers /,
    reason: 'needs an embedder',
    tests: [
      {
        file: 'src/cli/manifests/discover.test.ts',
        name: 'discover --providers searches by meaning, and --explain shows both parts or why there are no vectors',
      },
    ],
    fails: /--providers providers\.yaml does not exist/,
  },
  {
    command: /^temper mcp (?:tools|accept) (?:notes|search)\b/,
    reason: 'needs a server of the user',
    tests: [ACCEPTED],
    fails: /mcp\.yaml has no server "(?:notes|search)"/,
  },
  {
    command: /^temper mcp manifest search /,
    reason: 'needs a server of the user',
    tests: [
      {
        file: 'src/cli/mcp/servers/print-manifests.test.ts',
        name: 'accepted tools are valid Capabilities with the digests of what the user read, safe for a terminal',
      },
    ],
    fails: /mcp\.yaml has no server "search"/,
  },
];
