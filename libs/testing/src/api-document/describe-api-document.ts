import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { previewDocument } from '@platform/open-api';
import type { OpenApiDocument } from '@platform/open-api';
import type { ServiceDefinition } from '@platform/service-defaults';
import { clientTypeErrors } from './client-types';
import { lintDocument } from './lint-document';
import { documentFile } from './workspace-file';

/**
 * The tests that every service's OpenAPI document has to pass. With `UPDATE_DOCS=1` the committed document is written first.
 * @param usage how a client uses the generated types; see `clientTypeErrors`
 */
export function describeApiDocument(definition: () => ServiceDefinition, usage: string): void {
  describe('the OpenAPI document', () => {
    let document: OpenApiDocument;
    let text: string;
    beforeAll(async () => {
      document = await previewDocument(definition());
      text = `${JSON.stringify(document, null, 2)}\n`;
    });

    it('is committed as the code has it (UPDATE_DOCS=1 writes it)', () => {
      const file = documentFile(definition().name);
      if (process.env['UPDATE_DOCS'] === '1') writeFileSync(file, text);
      expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe(text);
    });

    it('lints without an error or a warning', async () => {
      expect(await lintDocument(text)).toEqual([]);
    });

    it('has an example in every body', () => {
      expect(bodiesWithoutExample(document)).toEqual([]);
    });

    it('has a success for every operation', () => {
      const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
      const without = operations.filter(
        ({ responses }) => !Object.keys(responses).some((status) => /^[23]/.test(status)),
      );
      expect(without).toEqual([]);
    });

    it('gives types for clients that compile', async () => {
      expect(await clientTypeErrors(documentFile(definition().name), usage)).toEqual([]);
      // A compiler and a generator: seconds, or a minute on a busy machine.
    }, 180_000);
  });
}

function bodiesWithoutExample({ paths, components }: OpenApiDocument): string[] {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const answers = operations.flatMap(({ operationId, requestBody, responses }) => [
    { of: operationId, content: requestBody?.content },
    ...Object.entries(responses).map(([status, answer]) => ({
      of: `${operationId} ${status}`,
      content: 'content' in answer ? answer.content : undefined,
    })),
  ]);
  const shared = Object.entries(components.responses).map(([of, { content }]) => ({ of, content }));
  return [...answers, ...shared]
    .filter(({ content = {} }) => Object.values(content).some(({ examples }) => examples === undefined))
    .map(({ of }) => of);
}
