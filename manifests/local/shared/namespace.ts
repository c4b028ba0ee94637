import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The name and the public-looking address of the site. */
export const SITE_HOST = 'api.example.com';
export const SITE_ADDRESS = '93.184.215.14';

/** A user who is not root is root of a user namespace, which may have network namespaces. */
const ISOLATED = ['-n', '-m', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])];
const SETUP = `mount --bind "$0" /etc/hosts && ip link set lo up && ip addr add ${SITE_ADDRESS}/32 dev lo && exec "$@"`;

/** Why this machine permits no network namespace with an address of its own; undefined when it does. */
export function whyNoNamespace(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces exist on Linux only';
  const { status, error, stderr } = spawnSync('unshare', [...ISOLATED, 'ip', 'link', 'set', 'lo', 'up']);
  if (error !== undefined) return 'the program unshare of util-linux is missing';
  return status === 0 ? undefined : stderr.toString().trim();
}

/**
 * Runs a program of Node in a network namespace in which the site's address is this machine, and returns its exit code. Nothing else can
 * be reached there. The rules about the addresses that an agent may reach stay as they are.
 */
export async function enterNamespace(folder: string, program: readonly string[]): Promise<number> {
  const reason = whyNoNamespace();
  if (reason !== undefined) {
    process.stderr.write(
      [
        `this sample needs a network namespace for its server, and gets none: ${reason}`,
        'It needs Linux, the programs unshare (util-linux) and ip (iproute2), and root or user namespaces',
        '(sysctl user.max_user_namespaces; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0).',
        'docs/samples.md says how its agent works with a host of yours.\n',
      ].join('\n'),
    );
    return 1;
  }
  const hosts = join(folder, 'hosts');
  await writeFile(hosts, `127.0.0.1 localhost\n${SITE_ADDRESS} ${SITE_HOST}\n`);
  const child = spawn('unshare', [...ISOLATED, 'sh', '-c', SETUP, hosts, process.execPath, ...program], {
    stdio: 'inherit',
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? 1;
}
