import { BlockList, isIP } from 'node:net';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

/**
 * Whether an address is in one of these ranges, each `ADDRESS/LENGTH`; an IPv4-mapped address is in the ranges of its IPv4 address. Throws
 * TEMPER_CONFIGURATION_INVALID for a range that is not one.
 */
export function addressRanges(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [, address = '', digits = ''] = /^([0-9A-Fa-f.:]{2,45})\/(\d{1,3})$/.exec(range) ?? [];
    const [family, length] = [isIP(address), Number(digits)];
    if (family === 0 || length > (family === 6 ? 128 : 32)) {
      throw new TemperError(
        'TEMPER_CONFIGURATION_INVALID',
        `"${printable(range, 100)}" is not a range of addresses; write it as "10.0.0.0/8" or "fd00::/8"`,
      );
    }
    list.addSubnet(address, length, nameOf(family));
  }
  return (address) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, nameOf(family));
  };
}

function nameOf(family: number): 'ipv4' | 'ipv6' {
  return family === 6 ? 'ipv6' : 'ipv4';
}
