import type { Rule } from 'eslint';
import { workspacePath } from './paths.ts';

const BANNED = new Set(['common', 'utils', 'util', 'helpers', 'helper', 'base', 'misc', 'shared']);
const LIB_INDEX = /^libs\/[^/]+\/src\/index\.ts$/;

/** Refuses names that say nothing, and barrels other than the one index.ts of a lib. */
export const tellingNames: Rule.RuleModule = {
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
