import type { Rule } from 'eslint';
import { moduleBoundaries } from './module-boundaries.ts';
import { noFolderCycle } from './no-folder-cycle.ts';
import { noImportCycle } from './no-import-cycle.ts';
import { isTestFile, workspacePath } from './paths.ts';

/**
 * Refuses to read the machine's clock. Code gets the time from a Clock (libs/time), so that tests can set the
 * time and replicas agree on it.
 */
const noWallClock: Rule.RuleModule = {
  meta: {
    type: 'problem',
    messages: { clock: 'read the time from a Clock (@platform/time), not from the machine' },
  },
  create(context) {
    return {
      "CallExpression[callee.object.name='Date'][callee.property.name='now']"(node: Rule.Node) {
        context.report({ node, messageId: 'clock' });
      },
      "NewExpression[callee.name='Date'][arguments.length=0]"(node: Rule.Node) {
        context.report({ node, messageId: 'clock' });
      },
      "CallExpression[callee.object.name='performance'][callee.property.name='now']"(node: Rule.Node) {
        context.report({ node, messageId: 'clock' });
      },
    };
  },
};

const MARKER = /\b(TODO|FIXME|XXX|HACK)\b(?!\([^)]{3,}\): \S)/;

/** Refuses a marker without a reason. The form is `TODO(why it waits): what to do`. */
const todoHasReason: Rule.RuleModule = {
  meta: {
    type: 'suggestion',
    messages: { reason: "write '{{marker}}(why it waits): what to do', or do it" },
  },
  create(context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments()) {
          const marker = MARKER.exec(comment.value)?.[1];
          if (marker !== undefined && comment.loc) {
            context.report({ loc: comment.loc, messageId: 'reason', data: { marker } });
          }
        }
      },
    };
  },
};

const BANNED = new Set(['common', 'utils', 'util', 'helpers', 'helper', 'base', 'misc', 'shared']);
const LIB_INDEX = /^libs\/[^/]+\/src\/index\.ts$/;

/** Refuses names without meaning, and every barrel but a lib's one index.ts. */
const tellingNames: Rule.RuleModule = {
  meta: {
    type: 'problem',
    messages: {
      banned: "'{{name}}' says nothing about what is inside: name the file or folder after its subject",
      barrel: 'only a lib has an index.ts, one, at its src root',
    },
  },
  create(context) {
    const path = workspacePath(context);
    return {
      Program(node) {
        for (const part of path.split('/')) {
          const name = part.split('.')[0] ?? part;
          if (BANNED.has(name)) context.report({ node, messageId: 'banned', data: { name } });
        }
        if (path.endsWith('/index.ts') && !LIB_INDEX.test(path))
          context.report({ node, messageId: 'barrel' });
      },
    };
  },
};

const FRAMEWORK_SUFFIXES =
  /\.(controller|flow|consumer|handler|query|repository|job|entity|module|guard|filter|decorator|dto|store|client|service)\.ts$/;
const FRAMEWORK_FILES = /\/src\/(main|migrate|install|load-development-identities)\.ts$|\/migrations\//;
const FRAMEWORK_PACKAGES = /^(@nestjs\/|@golevelup\/|typeorm$|nestjs-|fastify$|amqplib$)/;

/**
 * Inside an app, the suffix of a file decides whether it may import a framework: a plain `name.ts` may not.
 * Type-only imports are always allowed.
 */
const plainFileIsPure: Rule.RuleModule = {
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

/** House rules that no published plugin has; ../boundaries.spec.ts tests each of them. */
export const housePlugin = {
  meta: { name: 'house' },
  rules: {
    'module-boundaries': moduleBoundaries,
    'plain-file-is-pure': plainFileIsPure,
    'telling-names': tellingNames,
    'todo-has-reason': todoHasReason,
    'no-wall-clock': noWallClock,
    'no-import-cycle': noImportCycle,
    'no-folder-cycle': noFolderCycle,
  },
};
