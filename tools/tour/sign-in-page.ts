import { Difference } from './difference.ts';

/** A form of an HTML page: where it goes, and the fields that the page has filled in already. */
export interface PageForm {
  action: string;
  hidden: Record<string, string>;
}

/** The one form of a page. `pageUrl` is what a relative action is resolved against. Reads what the identity provider writes, not
 *  HTML in general. @throws {Difference} if there is no form */
export function readForm(html: string, pageUrl: string): PageForm {
  const form = /<form\b[^>]*>/i.exec(html)?.[0];
  const action = form === undefined ? undefined : attribute(form, 'action');
  if (action === undefined) throw new Difference('the page', 'a form', html);
  const inputs = (html.match(/<input\b[^>]*>/gi) ?? []).filter(
    (input) => attribute(input, 'type') === 'hidden',
  );
  const hidden = inputs.map((input) => [attribute(input, 'name') ?? '', attribute(input, 'value') ?? '']);
  return { action: new URL(action, pageUrl).href, hidden: Object.fromEntries(hidden) as PageForm['hidden'] };
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`, 'i').exec(tag)?.[1];
  return value?.replace(/&(?:#(\d+)|#x([\da-f]+)|(amp|quot|lt|gt));/gi, decodeEntity);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', quot: '"', lt: '<', gt: '>' };

function decodeEntity(_entity: string, decimal?: string, hexadecimal?: string, name?: string): string {
  if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? '';
  return String.fromCodePoint(decimal === undefined ? parseInt(hexadecimal ?? '', 16) : Number(decimal));
}
