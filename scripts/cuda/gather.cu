// The kernel `gather` in CUDA by hand: plain, and with the strategies of the two documents.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <string>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_pipeline_primitives.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR %s line %d: %s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);} }while(0)
__device__ __forceinline__ void pfL1(const void*p){asm volatile("prefetch.global.L1 [%0];"::"l"(p));}
__device__ __forceinline__ void pfL2(const void*p){asm volatile("prefetch.global.L2 [%0];"::"l"(p));}
template<int W> __device__ __forceinline__ float work(float dx,float v){
#pragma unroll
 for(int k=0;k<W;k++) dx+=sqrtf(v+k); return dx;}
// layout: warp-contiguous, lane-strided: idx = sub*items*32 + j*32 + lane
#define PRE int i=blockIdx.x*blockDim.x+threadIdx.x; int lane=threadIdx.x&31; long sub=i>>5; const int*ip=ind+sub*(long)items*32+lane;
template<int W> __global__ void base(const int*ind,const float*val,float*res,int items){PRE
 float dx=0;
#pragma unroll 1
 for(int j=0;j<items;j++){int x=ip[j*32]; float v=val[x]; dx=work<W>(dx,v);} res[i]=dx;}
template<int W,int U> __global__ void unr(const int*ind,const float*val,float*res,int items){PRE
 float dx=0;
#pragma unroll 1
 for(int j=0;j<items;j+=U){ int x[U]; float v[U];
#pragma unroll
  for(int u=0;u<U;u++) x[u]=ip[(j+u)*32];
#pragma unroll
  for(int u=0;u<U;u++) v[u]=val[x[u]];
#pragma unroll
  for(int u=0;u<U;u++) dx=work<W>(dx,v[u]);} res[i]=dx;}
// seed 000 ex 2/3: prefetch next index only
template<int W,int LV> __global__ void pfidx(const int*ind,const float*val,float*res,int items){PRE
 float dx=0;
#pragma unroll 1
 for(int j=0;j<items;j++){ if(j<items-1){ if(LV==1) pfL1(ip+(j+1)*32); else pfL2(ip+(j+1)*32);} int x=ip[j*32]; float v=val[x]; dx=work<W>(dx,v);} res[i]=dx;}
// indirect prefetch distance D: load index D ahead (index prefetched 2D ahead)
template<int W,int LV> __global__ void pfind(const int*ind,const float*val,float*res,int items,int D){PRE
 float dx=0;
#pragma unroll 1
 for(int j=0;j<items;j++){ int jn=min(j+D,items-1); int j2=min(j+2*D,items-1);
  if(LV==1){pfL1(ip+j2*32); pfL1(val+ip[jn*32]);} else {pfL2(ip+j2*32); pfL2(val+ip[jn*32]);}
  int x=ip[j*32]; float v=val[x]; dx=work<W>(dx,v);} res[i]=dx;}
// register rolling value distance D (indices 2D ahead rolled too)
template<int W,int D> __global__ void regroll(const int*ind,const float*val,float*res,int items){PRE
 float dx=0; float v[D]; int x[D];
#pragma unroll
 for(int u=0;u<D;u++) v[u]=val[ip[u*32]];
#pragma unroll
 for(int u=0;u<D;u++) x[u]=ip[min(u+D,items-1)*32];
#pragma unroll 1
 for(int j=0;j<items;j+=D){
#pragma unroll
  for(int u=0;u<D;u++){ float c=v[u]; v[u]=val[x[u]]; x[u]=ip[min(j+u+2*D,items-1)*32]; dx=work<W>(dx,c);} } res[i]=dx;}
// smem rolling async: ring of D per thread; index D+1.. ahead by plain load in register rolling of 1
template<int W> __global__ void smasync(const int*ind,const float*val,float*res,int items,int D){PRE
 extern __shared__ float sm[]; float*v=sm; int B=blockDim.x; int t=threadIdx.x;
 for(int k=0;k<D;k++){ __pipeline_memcpy_async(&v[k*B+t],&val[ip[k*32]],4); __pipeline_commit(); }
 int xn=ip[min(D,items-1)*32]; float dx=0; int c=0;
#pragma unroll 1
 for(int j=0;j<items;j++){
  int x2=ip[min(j+D+1,items-1)*32];
  switch(D){case 1:__pipeline_wait_prior(0);break;case 2:__pipeline_wait_prior(1);break;case 4:__pipeline_wait_prior(3);break;case 8:__pipeline_wait_prior(7);break;default:__pipeline_wait_prior(15);} 
  float cur=v[c*B+t];
  __pipeline_memcpy_async(&v[c*B+t],&val[xn],4); __pipeline_commit();
  xn=x2; if(++c==D)c=0; dx=work<W>(dx,cur);} 
 __pipeline_wait_prior(0); res[i]=dx;}
int *ind; float*val,*res; 
template<class F> float tm(F f){ cudaEvent_t a,b; cudaEventCreate(&a);cudaEventCreate(&b); f(); CK(cudaDeviceSynchronize()); std::vector<float> t; for(int r=0;r<5;r++){cudaEventRecord(a); f(); cudaEventRecord(b); CK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms,a,b); t.push_back(ms);} std::sort(t.begin(),t.end()); CK(cudaGetLastError()); return t[2];}
__global__ void mkind(int*p,long n,unsigned M,unsigned seed){ for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x){ unsigned long z=(i+1)*0x9E3779B97F4A7C15ul+seed; z=(z^(z>>30))*0xBF58476D1CE4E5B9ul; z=(z^(z>>27))*0x94D049BB133111EBul; z^=z>>31; p[i]=(unsigned)(z%M);} }
__global__ void mkval(float*p,long n){ for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x) p[i]=(i*2654435761u>>8&0xffff)/65536.f+1.f; }
template<int W> void suite(int nb,int bs,int items,long M){
 printf("== gather W=%d blocks=%d bs=%d items=%d M=%ld\n",W,nb,bs,items,M);
 mkind<<<1024,256>>>(ind,(long)nb*bs*items,M,7); CK(cudaDeviceSynchronize());
 std::vector<float> ref((size_t)nb*bs),o((size_t)nb*bs);
 float tb=tm([&]{base<W><<<nb,bs>>>(ind,val,res,items);}); CK(cudaMemcpy(ref.data(),res,ref.size()*4,cudaMemcpyDeviceToHost));
 double bytes=(double)nb*bs*items*(4+32); printf("%-14s %8.3f ms  x1.00  (%.0f GB/s sectors)\n","base",tb,bytes/tb/1e6);
 auto rep=[&](const char*n,float t){ CK(cudaMemcpy(o.data(),res,o.size()*4,cudaMemcpyDeviceToHost)); int bad=0; for(size_t i=0;i<o.size();i++) if(o[i]!=ref[i]) bad++; printf("%-14s %8.3f ms  x%.2f %s\n",n,t,tb/t,bad?"MISMATCH":""); CK(cudaMemset(res,0,o.size()*4)); };
 rep("unroll4",tm([&]{unr<W,4><<<nb,bs>>>(ind,val,res,items);}));
 rep("unroll8",tm([&]{unr<W,8><<<nb,bs>>>(ind,val,res,items);}));
 rep("unroll16",tm([&]{unr<W,16><<<nb,bs>>>(ind,val,res,items);}));
 rep("idxL2 d1",tm([&]{pfidx<W,2><<<nb,bs>>>(ind,val,res,items);}));
 rep("idxL1 d1",tm([&]{pfidx<W,1><<<nb,bs>>>(ind,val,res,items);}));
 for(int D:{1,2,4,8,16}){ char s[32]; sprintf(s,"indL2 d%d",D); rep(s,tm([&]{pfind<W,2><<<nb,bs>>>(ind,val,res,items,D);})); sprintf(s,"indL1 d%d",D); rep(s,tm([&]{pfind<W,1><<<nb,bs>>>(ind,val,res,items,D);})); }
 rep("regroll2",tm([&]{regroll<W,2><<<nb,bs>>>(ind,val,res,items);}));
 rep("regroll4",tm([&]{regroll<W,4><<<nb,bs>>>(ind,val,res,items);}));
 rep("regroll8",tm([&]{regroll<W,8><<<nb,bs>>>(ind,val,res,items);}));
 rep("regroll16",tm([&]{regroll<W,16><<<nb,bs>>>(ind,val,res,items);}));
 for(int D:{1,2,4,8,16}){ char s[32]; sprintf(s,"smasync d%d",D); rep(s,tm([&]{smasync<W><<<nb,bs,D*bs*4>>>(ind,val,res,items,D);})); }
}
int main(){ long M=1l<<28; CK(cudaMalloc(&val,M*4)); CK(cudaMalloc(&ind,(1l<<29)*4l)); CK(cudaMalloc(&res,1<<26)); mkval<<<1024,256>>>(val,M); CK(cudaDeviceSynchronize());
 cudaDeviceProp p; cudaGetDeviceProperties(&p,0); printf("%s SM %d L2 %d MB regs/SM %d smem/SM %zu\n",p.name,p.multiProcessorCount,p.l2CacheSize>>20,p.regsPerMultiprocessor,p.sharedMemPerMultiprocessor);
 suite<64>(1,128,1024,M);
 suite<64>(132,128,1024,M);
 suite<8>(132,128,1024,M);
 suite<8>(132*4,256,512,M);
 suite<8>(132*8,256,512,M);
 suite<8>(132,128,1024,1l<<22);
 return 0; }
