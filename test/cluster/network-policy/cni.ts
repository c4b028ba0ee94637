// The last CNI plugin of the node: it returns when the network policies are enforced for the pod's address, so containers start after that.
import { text } from 'node:stream/consumers';
import { announce } from './announcements.ts';

interface Config {
  readonly cniVersion: string;
  readonly prevResult?: { readonly ips: readonly [{ readonly address: string }] };
}

async function add({ prevResult }: Config, args: string): Promise<object> {
  const uid = args
    .split(';')
    .find((arg) => arg.startsWith('K8S_POD_UID='))
    ?.slice('K8S_POD_UID='.length);
  const ip = prevResult?.ips[0].address.split('/')[0];
  if (uid === undefined || ip === undefined)
    throw new Error('CNI_ARGS has no K8S_POD_UID, or prevResult has no address');
  await announce({ uid, ip });
  return prevResult ?? {};
}

async function main(command: string): Promise<void> {
  const config = JSON.parse(await text(process.stdin)) as Config;
  const { cniVersion } = config;
  if (command === 'VERSION') process.stdout.write(JSON.stringify({ cniVersion, supportedVersions: [cniVersion] }));
  if (command !== 'ADD') return;
  try {
    process.stdout.write(JSON.stringify(await add(config, process.env['CNI_ARGS'] ?? '')));
  } catch (error) {
    process.stdout.write(JSON.stringify({ cniVersion, code: 100, msg: String(error) }));
    process.exitCode = 1;
  }
}

await main(process.env['CNI_COMMAND'] ?? '');
