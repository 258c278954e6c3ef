import { tensor, grad } from 'postgrad'
const T=(v)=>tensor([v]).requiresGrad_()
const t=(n,f)=>{try{console.log(n,...f())}catch(e){console.log(n,e.code,e.message)}}
const g=(p)=>p.grad?.toArray()??null
t('detach_',()=>{const p=T(1);const a=p.mul(2);p.detach_().requiresGrad_();a.add(p.mul(3)).sum().backward();return [g(p)]})
t('rg false',()=>{const p=T(1);const a=p.mul(2);p.requiresGrad_(false);a.sum().backward();return [g(p)]})
t('detach_ only',()=>{const p=T(1);const a=p.mul(2);p.detach_();a.sum().backward();return [g(p)]})
t('interior',()=>{const p=T(1),w=T(5);const a=p.mul(2);p.requiresGrad_(false);p.mul_(w);a.sum().add(p.sum()).backward();return [g(p),g(w),p.isLeaf]})
t('interior again',()=>{const p=T(1),w=T(5);const a=p.mul(2);p.requiresGrad_(false);p.mul_(w);p.detach_().requiresGrad_();a.sum().add(p.mul(3).sum()).backward();return [g(p),g(w),p.isLeaf]})
t('hooks',()=>{const p=T(1);const c=[];p.registerHook((x)=>{c.push(x.toArray())});const a=p.mul(2);p.detach_().requiresGrad_();a.add(p.mul(3)).sum().backward();return [c,g(p)]})
t('grad',()=>{const p=T(1);const a=p.mul(2);p.detach_().requiresGrad_();return grad(a.add(p.mul(3)).sum(),[p]).map(x=>x.toArray())})
