import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import specs from '@asyncapi/specs';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { ALL_CONTRACTS } from './all-contracts';
import { asyncApiDocument, TASK_SERVICE_OPERATIONS } from './asyncapi-document';

const FILE = join(__dirname, '../../../docs/asyncapi.yaml');

describe('docs/asyncapi.yaml', () => {
  const manifest = readFileSync(join(__dirname, '../package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  const document = asyncApiDocument(ALL_CONTRACTS, TASK_SERVICE_OPERATIONS, version);

  it('is up to date with the contracts', () => {
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(FILE, document);
    expect(readFileSync(FILE, 'utf8')).toBe(document);
  });

  it('holds every message, and an operation for every message that is not a reply', () => {
    const { sends, receives } = TASK_SERVICE_OPERATIONS;
    for (const { name } of ALL_CONTRACTS) {
      expect(document).toContain(`\n    ${name}:\n      name: "${name}"`);
      const isResponse = /(Succeeded|Failed)$/.test(name);
      expect([name, [...sends, ...receives].includes(name)]).toEqual([name, !isResponse]);
    }
  });

  describe('read by independent parsers', () => {
    const read = parse(document) as object;

    it('is a valid AsyncAPI 3.0 document', () => {
      const validator = new Ajv({ strict: false, allErrors: true });
      addFormats(validator);
      const isValid = validator.compile(specs.schemasWithoutId['3.0.0'] as object);
      expect([isValid(read), isValid.errors]).toEqual([true, null]);
      // The validator does reject an invalid document.
      const broken = { ...read, operations: { op: { action: 'shout' } } };
      expect(isValid(broken)).toBe(false);
    });

    it('has no dangling references', () => {
      const references = [...referencesIn(read)];
      expect(references.length).toBeGreaterThan(30);
      expect(references.filter((reference) => resolve(read, reference) === undefined)).toEqual([]);
    });

    it('has payload schemas that compile and accept real envelopes', () => {
      const validator = new Ajv({ strict: false, allErrors: true });
      addFormats(validator);
      validator.addSchema(read, 'document');
      const payload = (name: string): ValidateFunction => {
        const found = validator.getSchema(`document#/components/messages/${name}/payload`);
        if (found === undefined) throw new Error(`no payload of ${name}`);
        return found;
      };
      for (const { name } of ALL_CONTRACTS) expect(payload(name)({})).toBe(false);
      const request = payload('IUnscheduleRecurringTaskInstanceGenerationRequest');
      const envelope = {
        messageId: 'c0ffee00-0000-4000-8000-000000000000',
        messageType: ['urn:message:Platform.Contracts:IUnscheduleRecurringTaskInstanceGenerationRequest'],
        message: { facilityId: 501 },
      };
      expect([request(envelope), request.errors]).toEqual([true, null]);
      expect(request({ ...envelope, message: { facilityId: '501' } })).toBe(false);
      expect(request({ ...envelope, messageType: ['urn:message:Platform.Contracts:Other'] })).toBe(false);
    });
  });
});

function* referencesIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === '$ref' && typeof member === 'string') yield member;
    else yield* referencesIn(member);
  }
}

/** Resolves a reference within a document (RFC 6901). */
function resolve(document: object, reference: string): unknown {
  const [start, ...steps] = reference
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (start !== '#') return undefined;
  return steps.reduce<unknown>(
    (value, step) => (value as Record<string, unknown> | undefined)?.[step],
    document,
  );
}
