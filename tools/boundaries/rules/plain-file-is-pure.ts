import type { Rule } from 'eslint';
import { isTestFile, workspacePath } from './paths.ts';

const FRAMEWORK_SUFFIXES =
  /\.(controller|flow|consumer|handler|query|repository|job|entity|module|guard|filter|decorator|dto|store|client|service)\.ts$/;
const FRAMEWORK_FILES = /\/src\/(main|migrate|install|load-development-identities)\.ts$|\/migrations\//;
const FRAMEWORK_PACKAGES = /^(@nestjs\/|@golevelup\/|typeorm$|nestjs-|fastify$|amqplib$)/;

/** Inside an app the suffix says what a file may import: a plain `name.ts` is pure. Type-only imports are free. */
export const plainFileIsPure: Rule.RuleModule = {
  meta: {
    type: 'problem',
    messages: {
      impure:
        "'{{source}}' may be imported only by files whose suffix allows it (.controller, .service, .repository, …); this plain file must stay pure",
    },
  },
  create(context) {
    const path = workspacePath(context);
    const isPlainAppFile =
      /^apps\/[^/]+\/src\//.test(path) &&
      !FRAMEWORK_SUFFIXES.test(path) &&
      !FRAMEWORK_FILES.test(path) &&
      !isTestFile(path);
    if (!isPlainAppFile) return {};
    return {
      ImportDeclaration(node) {
        const source = String(node.source.value);
        const isTypeOnly = (node as { importKind?: string }).importKind === 'type';
        if (!isTypeOnly && FRAMEWORK_PACKAGES.test(source)) {
          context.report({ node, messageId: 'impure', data: { source } });
        }
      },
    };
  },
};
