/** Addresses that no agent reaches, in the notations that a name server may give. */
export const INSIDE_ADDRESSES: readonly string[] = [
  '0.0.0.0',
  '10.96.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.8',
  '192.168.0.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:10.0.0.1',
  '::ffff:169.254.169.254',
  '::ffff:0:a9fe:a9fe',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::1',
  '2001::1',
  '2002:a9fe:a9fe::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fec0::1',
  'ff02::1',
];

/** Names below the domain that lead to those addresses: alone, and beside a public one. */
export function namesInside(domain: string, publicAddress: string): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    INSIDE_ADDRESSES.flatMap((address, index) => [
      [`inside-${index}.${domain}`, [address]],
      [`mixed-${index}.${domain}`, [publicAddress, address]],
    ]),
  );
}
