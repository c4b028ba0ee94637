import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Namespaces } from './namespaces.ts';

const run = promisify(execFile);
/** The node's end of the link to the machine. */
const LINK = 'machine';

/** 198.18.0.0/15 is reserved for benchmarks, so no real network uses it. The machine has address .1, the node .2. */
function addresses(index: number) {
  return { interface: `temper${index}`, machine: `198.18.${index}.1`, node: `198.18.${index}.2` };
}

/**
 * Connects the machine and the node by a veth pair, so that the API server is reachable, and returns the node's address. The node reaches
 * nothing beyond the machine.
 */
export async function makeNetwork(space: Namespaces): Promise<string> {
  const { node } = await makeLink(space.pid);
  const ip = (...args: string[]) => space.run('ip', ...args);
  // Disable IPv6 before any link is up: through a link-local address a pod could bypass all policies.
  await space.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1', 'net.ipv6.conf.default.disable_ipv6=1');
  await space.run('sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await ip('link', 'set', 'lo', 'up');
  await ip('address', 'add', `${node}/30`, 'dev', LINK);
  await ip('link', 'set', LINK, 'up');
  // Service addresses belong to no link, so the node needs a default route before kube-proxy translates them. The route uses an unconnected
  // bridge, because not every kernel has dummy links.
  await ip('link', 'add', 'nowhere', 'type', 'bridge');
  await ip('link', 'set', 'nowhere', 'up');
  await ip('route', 'add', 'default', 'dev', 'nowhere', 'src', node);
  return node;
}

/**
 * Removes the link while the namespaces still exist. The kernel would remove it with them, but connections without a peer can delay the
 * removal of a network namespace for many minutes.
 */
export async function removeNetwork(pid: number): Promise<void> {
  try {
    await run('nsenter', [`--net=/proc/${pid}/ns/net`, 'ip', 'link', 'delete', LINK]);
  } catch (error) {
    // The link does not exist when the cluster failed to start.
    if (!String(error).includes('Cannot find device')) throw error;
  }
}

/** Several clusters can run at once: uses the first free index. */
async function makeLink(pid: number) {
  let last: unknown;
  for (let index = 1; index < 255; index++) {
    const names = addresses(index);
    try {
      const peer = ['peer', 'name', LINK, 'netns', String(pid)];
      await run('ip', ['link', 'add', names.interface, 'type', 'veth', ...peer]);
    } catch (error) {
      last = error;
      continue;
    }
    await run('ip', ['address', 'add', `${names.machine}/30`, 'dev', names.interface]);
    await run('ip', ['link', 'set', names.interface, 'up']);
    return names;
  }
  throw new Error(`could not create a link to the node: ${String(last)}`);
}
