import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type Gitea, startGitea } from '../../cluster/gitea.ts';
import { GiteaRepository } from '../../support/gitops/gitea-repository.ts';
import { ROOT, startTemper, temporaryFolder } from '../../system/command.ts';

const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');

const manifests = (host: string, policy = ''): string => `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: coder}
spec:
  trustPolicyRef: {name: coding}
  model: {primary: default/default}
  prompt: {system: You change code.}
  grants: {tools: ["git_*", file_write], network: ["${host}"]}
  limits: {turns: 12, steps: 20}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: coding}
spec:
  level: {initial: standard}
  autonomy: Full
  egress: {allow: ["${host}"]}
${policy}`;

/** Clones, changes, pushes to a branch, tries the default branch, and asks for a review. */
const script = (url: string): string => `
rules:
  - when: {lastTool: {isError: true, name: git_push}}
    answer: {toolCalls: [{id: r, name: git_pull_request, arguments: {url: "${url}", branch: agents/fix, title: "fix: a word", body: "It was wrong."}}]}
  - when: {lastTool: {isError: true}}
    answer: {text: "failed: {{lastTool.error.code}}"}
  - when: {turn: 1}
    answer: {toolCalls: [{id: a, name: git_clone, arguments: {url: "${url}", folder: work}}]}
  - when: {lastTool: {name: git_clone}}
    answer: {toolCalls: [{id: b, name: file_write, arguments: {path: work/a.txt, text: "a"}}]}
  - when: {lastTool: {name: file_write}}
    answer: {toolCalls: [{id: c, name: git_commit, arguments: {repository: work, message: "fix: a word", all: true}}]}
  - when: {lastTool: {name: git_commit}}
    answer: {toolCalls: [{id: d, name: git_push, arguments: {url: "${url}", repository: work, branch: agents/fix, commit: "{{lastTool.commit}}"}}]}
  - when: {lastTool: {name: git_push}}
    answer: {toolCalls: [{id: e, name: git_push, arguments: {url: "${url}", repository: work, branch: main, commit: "{{lastTool.commit}}"}}]}
  - when: {lastTool: {name: git_pull_request}}
    answer: {text: "{{lastTool.state}} {{lastTool.isNew}} {{lastTool.page}}"}
`;

describe('an agent of a run with a private repository on Gitea', { skip: CAN ? false : 'needs Linux' }, () => {
  let gitea: Gitea;
  let repository: GiteaRepository;

  before(async () => {
    const launcher = join(ROOT, 'dist/launcher/temper-launcher');
    if (!existsSync(launcher)) await promisify(execFile)('make', ['-s', 'launcher'], { cwd: ROOT });
    gitea = await startGitea();
    repository = new GiteaRepository(gitea);
    await repository.create();
    await gitea.call('PATCH', '/repos/owner/tools', { private: true });
  });
  after(() => gitea?.[Symbol.asyncDispose]());

  it('it clones with the token of the user, pushes a branch and opens one pull request, and cannot push main', async () => {
    await using folder = await temporaryFolder();
    const { path } = folder;
    const host = `localhost:${gitea.port}`;
    const url = `${gitea.url}/owner/tools.git`;
    const config = join(path, 'config/temper');
    await mkdir(config, { recursive: true });
    await writeFile(join(path, 'script.yaml'), script(url));
    const git = {
      url,
      username: 'owner',
      branchPrefix: 'agents/',
      pullRequests: { type: 'Gitea', apiUrl: `${gitea.url}/api/v1`, repository: 'owner/tools' },
    };
    const connection = { name: 'tools', hosts: [host], private: true, tokenEnvironment: 'GITEA_TOKEN', git };
    const connections = [{ ...connection, caFile: gitea.caFile }];
    await writeFile(join(config, 'connections.yaml'), JSON.stringify({ connections }), { mode: 0o600 });
    const run = async (name: string, policy?: string) => {
      await mkdir(join(path, name));
      await writeFile(join(path, 'agent.yaml'), manifests(host, policy));
      const folders = ['--workspace', name, '--state', `${name}-state`, '-m', 'go', '--output', 'json'];
      return startTemper(['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', ...folders], {
        cwd: path,
        environment: { XDG_CONFIG_HOME: join(path, 'config'), GITEA_TOKEN: gitea.token },
      }).ended;
    };
    const waiting = await run('waiting');
    assert.equal(waiting.code, 3, waiting.stderr);
    assert.match(waiting.stderr, /temper approve git-push-/, 'files of the workspace are private data');
    assert.equal((await repository.pulls('agents/fix')).length, 0);

    const { code, stdout, stderr } = await run('work', '  privateData: {sources: []}\n');
    assert.equal(code, 0, stderr);
    assert.ok(!stdout.includes(gitea.token) && !stderr.includes(gitea.token));
    assert.match(stdout, /Open true https:\/\/localhost:\d+\/owner\/tools\/pulls\/1/);
    assert.match(stdout, /TEMPER_CONNECTION_DENIED/);
    assert.equal(await repository.fileOn('agents/fix', 'a.txt'), 'a');
    assert.equal((await repository.pulls('agents/fix')).length, 1);
    await assert.rejects(repository.fileOn('main', 'a.txt'), /404/);
  });
});
