import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { tool } from '../../cluster/tools.ts';
import { poll } from '../poll.ts';
import type { GiteaRepository } from './gitea-repository.ts';

/** The account that applies what was merged; the list of approvers names it. */
export const GITOPS_ACCOUNT = 'system:serviceaccount:flux-system:kustomize-controller';
const INTERVAL_MS = 3_000;
const TIMEOUT_MS = 120_000;
const GROUPS = ['system:serviceaccounts', 'system:authenticated'];

/** Does what a GitOps controller does: applies the tree of the branch, as its own account. */
export class GitOpsController implements AsyncDisposable {
  readonly #folder: string;
  readonly #kubectl: string;
  readonly #flags: readonly string[];

  private constructor(folder: string, kubectl: string, flags: readonly string[]) {
    this.#folder = folder;
    this.#kubectl = kubectl;
    this.#flags = flags;
  }

  /** `flags` are those of `kubectl apply`. */
  static async open(flags: readonly string[] = []): Promise<GitOpsController> {
    return new GitOpsController(await mkdtemp(join(tmpdir(), 'temper-tree-')), await tool('kubectl'), flags);
  }

  /** Reads the files of the branch `main` below the folder. */
  async pull(repository: Pick<GiteaRepository, 'filesBelow'>, folder: string): Promise<void> {
    for (const [path, text] of Object.entries(await repository.filesBelow(folder))) {
      await mkdir(dirname(join(this.#folder, path)), { recursive: true });
      await writeFile(join(this.#folder, path), text);
    }
  }

  apply(kubeconfig: string): Promise<string> {
    return this.#run(kubeconfig, 'apply');
  }

  /** Applies again and again, as a controller does at its interval, until `find` finds something. */
  applyUntil<T>(kubeconfig: string, what: string, find: () => Promise<T | undefined>): Promise<T> {
    return poll(
      what,
      async () => {
        await this.apply(kubeconfig);
        return poll(what, find, { timeoutMs: INTERVAL_MS }).catch(() => undefined);
      },
      { timeoutMs: TIMEOUT_MS },
    );
  }

  /** Fails when there is a difference. */
  diff(kubeconfig: string): Promise<string> {
    return this.#run(kubeconfig, 'diff');
  }

  async #run(kubeconfig: string, verb: string): Promise<string> {
    const account = ['--as', GITOPS_ACCOUNT, ...GROUPS.flatMap((group) => ['--as-group', group])];
    const args = [verb, '-R', '-f', this.#folder, ...account, ...this.#flags];
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    return (await promisify(execFile)(this.#kubectl, args, { env })).stdout;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.#folder, { recursive: true, force: true });
  }
}
