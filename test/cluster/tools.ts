import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The build that contains a program: the Kubernetes components share one build. */
const BUILDS = {
  etcd: 'control-plane',
  'kube-apiserver': 'control-plane',
  'kube-controller-manager': 'control-plane',
  'kube-scheduler': 'control-plane',
  kubelet: 'control-plane',
  'kube-proxy': 'control-plane',
  kubectl: 'control-plane',
  'nats-server': 'nats-server',
  'nats-exporter': 'nats-exporter',
  helm: 'helm',
  coredns: 'coredns',
  kwok: 'kwok',
  pause: 'pause',
  gitea: 'gitea',
  registry: 'registry',
  'slow-disk': 'slow-disk',
  'qwen-code': 'qwen-code',
  'mcp-servers': 'mcp-servers',
} as const;

export type ToolName = keyof typeof BUILDS;

/** The path of the program, or of the folder of a package. Builds it first when it is not cached (takes minutes). Throws the tail of the build's output. */
export async function tool(name: ToolName): Promise<string> {
  const script = fileURLToPath(new URL('build-tools.sh', import.meta.url));
  const { stdout } = await promisify(execFile)(script, [BUILDS[name]], { maxBuffer: 16 * 1024 * 1024 });
  return join(stdout.trim(), name);
}
