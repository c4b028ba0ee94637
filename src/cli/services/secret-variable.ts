import { invalidMember, requiredText } from '../../lib/config/config-members.ts';
import type { Json } from '../../lib/json.ts';

/** The names of variables whose values Temper removes from everything that it prints. */
const SECRET_VARIABLE = /^[A-Z][A-Z0-9_]{0,120}(_TOKEN|_KEY)$/;

/** Throws TEMPER_MANIFEST_INVALID for another name. */
export function secretVariable(file: string, field: string, value: Json): string {
  const name = requiredText(file, field, value);
  if (SECRET_VARIABLE.test(name)) return name;
  throw invalidMember(file, field, 'must name a variable in upper case that ends with _TOKEN or _KEY');
}
